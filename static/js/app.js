// The behaviours of every page. Each is bound by data-* attributes through delegation, so it also
// works on parts that arrive later.
import "./theme.js";
import "./menu.js";
import "./dialog.js";
import "./copy.js";
import "./draft.js";
import "./forms.js";
import "./password.js";
import "./player.js";
import "./localtime.js";
