// Runs before the page is drawn, so that parts for and without scripts never flash.
document.documentElement.dataset.scripts = "";
