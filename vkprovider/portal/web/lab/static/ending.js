// Warns before a lab ends, also who looks elsewhere: in the title of the page from ten minutes before, and where the
// browser was allowed to, by a notification five minutes before. The page itself has a sentence; live.js counts.
"use strict";

(() => {
  const TITLE_S = 600;
  const NOTE_S = 300;
  const title = document.title;
  const tell = document.getElementById("lab-tell");

  const note = (until) => {
    const key = `ending ${location.pathname} ${until}`;
    if (Notification.permission !== "granted" || sessionStorage.getItem(key)) return;
    sessionStorage.setItem(key, "told");
    new Notification("Your lab ends soon", { body: "Extend it, or download what you need.", tag: key });
  };

  const look = () => {
    const time = document.querySelector("#lab-time time[data-until]");
    const left = time?.secondsLeft ?? NaN;
    const ends = left > 0 && left <= TITLE_S;
    const words = ends ? `(${Math.ceil(left / 60)} min left) ${title}` : title;
    if (document.title !== words) document.title = words;
    if (!("Notification" in globalThis)) return;
    if (ends && left <= NOTE_S) note(time.dataset.until);
    tell.hidden = !time || Notification.permission !== "default";
  };

  tell.querySelector("button").addEventListener("click", async () => {
    await Notification.requestPermission();
    look();
  });
  setInterval(look, 1000);
  document.addEventListener("live:changed", look);
  look();
})();
