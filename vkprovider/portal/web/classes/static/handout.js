// A button of the hand-out copies names and links, a line for each learner, as a mail or a spreadsheet takes them.
"use strict";

(() => {
  const button = document.getElementById("copy-links");
  const said = document.getElementById("copied");
  if (!button || !said || !navigator.clipboard) return;
  button.hidden = false;
  button.addEventListener("click", async () => {
    const rows = [...document.querySelectorAll("#hand-out tr")];
    const lines = rows.map((row) => {
      const [learner, name] = [row.cells[0].firstChild, row.querySelector(".shown")].map((part) => part?.textContent.trim());
      return [learner, ...(name ? [name] : []), row.querySelector("a")?.href ?? ""].join("\t");
    });
    try {
      await navigator.clipboard.writeText(`${lines.join("\n")}\n`);
      said.textContent = `${lines.length} copied`;
    } catch {
      said.textContent = "The browser did not let the page copy; select the rows, or take the CSV.";
    }
  });
})();
