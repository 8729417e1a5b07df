// Opens the console of a device in the page of its lab. Without this script the links lead to a page of their own.
"use strict";

(() => {
  const panel = document.getElementById("console-panel");
  const frame = document.getElementById("console-frame");
  let opener = null;

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-console]");
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    opener = link;
    const url = new URL(link.href instanceof SVGAnimatedString ? link.href.baseVal : link.href, location.href);
    url.searchParams.set("panel", "");
    panel.hidden = false;
    // A frame whose address is set anew adds to the history of the page; one that is replaced does not.
    frame.contentWindow.location.replace(url);
    panel.scrollIntoView({ block: "nearest" });
    frame.focus();
  });

  document.getElementById("console-close").addEventListener("click", () => {
    frame.contentWindow.location.replace("about:blank");
    panel.hidden = true;
    (opener?.isConnected ? opener : document.getElementById("main")).focus();
  });
})();
