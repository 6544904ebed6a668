// [data-dialog-open="id"] opens <dialog id="id">, [data-dialog-close] closes the one it stands in.
// The browser keeps the focus inside and gives it back; a press on the backdrop closes too.
function isOutside(event, dialog) {
  const box = dialog.getBoundingClientRect();
  const { clientX, clientY } = event;
  return clientX < box.left || clientX > box.right || clientY < box.top || clientY > box.bottom;
}

document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-dialog-open]");
  if (opener) {
    const dialog = document.getElementById(opener.dataset.dialogOpen);
    if (dialog && !dialog.open) {
      event.preventDefault();
      dialog.showModal();
    }
    return;
  }
  const closer = event.target.closest("[data-dialog-close]");
  if (closer) {
    event.preventDefault();
    closer.closest("dialog")?.close();
    return;
  }
  if (event.target instanceof HTMLDialogElement && event.target.open && isOutside(event, event.target)) event.target.close();
});

// Opened by its address before the scripts ran: become a real, modal dialog.
const target = location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : null;
if (target instanceof HTMLDialogElement) {
  history.replaceState(null, "", location.pathname + location.search);
  target.showModal();
}
