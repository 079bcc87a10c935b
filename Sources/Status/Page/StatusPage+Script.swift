/// The script of the page, which updates it.
///
/// The policy has its hash, so it is a constant. The page is complete without it. The script replaces only
/// what is above and below the form, so that text in it stays.
extension StatusPage {
    static let script: StaticString = """
        const main = document.querySelector("main");
        const parts = ["#state", "#content"];
        const note = document.getElementById("updates");
        let isUpdating = false;
        let hovered;

        // The page has UTC, so that it is complete without this script. This is the form 2026-11-24 09:30:00.
        const local = new Intl.DateTimeFormat("sv", { dateStyle: "short", timeStyle: "medium" });
        const localTime = utc => local.format(new Date(utc));

        function showLocalTimes(root) {
          for (const time of root.querySelectorAll("time")) {
            time.dateTime = time.title = time.textContent;
            time.textContent = localTime(time.dateTime);
          }
        }

        // A mouse gets the value of a bar from the table, which is there for all others.
        function showValue({ target, clientX }) {
          if (hovered) hovered.note.textContent = hovered.text;
          hovered = null;
          const chart = target.closest("svg[data-table]");
          if (!chart) return;
          const rows = document.getElementById(chart.dataset.table).tBodies[0].rows;
          const box = chart.getBoundingClientRect();
          const index = Math.floor((clientX - box.left) / box.width * rows.length);
          const cells = rows[Math.min(Math.max(index, 0), rows.length - 1)].cells;
          const note = chart.closest("figure").querySelector(".top");
          hovered = { note, text: note.textContent };
          note.textContent = `${cells[0].textContent.slice(0, 16)}: ${cells[chart.dataset.column].textContent}`;
        }

        // Selected text, such as a command, would be gone while it is copied.
        function isSelecting() {
          const selection = getSelection();
          return !selection.isCollapsed && main.contains(selection.anchorNode);
        }

        async function read() {
          const limits = { cache: "no-store", redirect: "error", signal: AbortSignal.timeout(10000) };
          const answer = await fetch("./", limits);
          if (!answer.ok) throw new Error(answer.status);
          const page = new DOMParser().parseFromString(await answer.text(), "text/html");
          if (!page.querySelector("main[data-at]")) throw new Error("another page");
          return page;
        }

        function show(page) {
          const active = main.contains(document.activeElement) && document.activeElement;
          const focused = active && (active.id ? `#${active.id}` : `a[href="${active.getAttribute("href")}"]`);
          const shown = page.querySelector("main");
          showLocalTimes(shown);
          for (const details of shown.querySelectorAll("details[id]")) {
            details.open = document.getElementById(details.id)?.open ?? false;
          }
          for (const part of parts) {
            main.querySelector(part).replaceChildren(...shown.querySelector(part).childNodes);
          }
          main.dataset.at = shown.dataset.at;
          document.title = page.title;
          document.querySelector("link").href = page.querySelector("link").href;
          if (focused) main.querySelector(focused)?.focus({ preventScroll: true });
        }

        function say(text, isFailure) {
          if (note.textContent != text) note.textContent = text;
          note.classList.toggle("failed", isFailure);
        }

        // A verdict that is old must not look like the present one.
        function showQuestion() {
          main.querySelector("h1").textContent = document.title = "The worker does not answer";
          const mark = main.querySelector(".mark");
          mark.setAttribute("class", "mark neutral");
          mark.querySelector("path").setAttribute("d", "M8.5 9a3.5 3.5 0 1 1 3.5 3.5v2M12 16.5v2.5");
        }

        async function update() {
          if (isUpdating || document.hidden || isSelecting()) return;
          isUpdating = true;
          try {
            show(await read());
            say("Updated every 15 seconds.", false);
          } catch {
            showQuestion();
            say(`Not updated since ${localTime(main.dataset.at)}: the worker does not answer.`, true);
          }
          isUpdating = false;
        }

        showLocalTimes(main);
        const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
        if (zone != "UTC") {
          document.getElementById("zone").textContent = `Times are those of ${zone}. Hover over one for UTC.`;
        }
        // The answer to a form gets an address, without the user's name, which a colleague can open.
        const address = document.getElementById("address");
        if (address) history.replaceState(null, "", address.href);
        if (main.dataset.at) {
          document.addEventListener("pointermove", showValue);
          say("Updated every 15 seconds.", false);
          setInterval(update, 15000);
          document.addEventListener("visibilitychange", update);
        }

        """
}
