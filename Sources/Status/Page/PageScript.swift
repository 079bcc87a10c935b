/// The script of the page, which updates it.
///
/// The policy has its hash, so it is a constant.
///
/// The page is complete without it. The script replaces only the content of `main`, so that text in the form stays.
enum PageScript {
    static var html: HTML { .constant(text) }

    static let text: StaticString = """
        const main = document.querySelector("main");
        const note = document.getElementById("updates");
        let isUpdating = false;

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
          const focused = main.contains(document.activeElement) && document.activeElement.getAttribute("href");
          const content = page.querySelector("main");
          main.replaceChildren(...content.childNodes);
          main.dataset.at = content.dataset.at;
          document.title = page.title;
          document.querySelector("link").href = page.querySelector("link").href;
          if (focused) main.querySelector(`a[href="${focused}"]`)?.focus({ preventScroll: true });
        }

        function say(text, isFailure) {
          if (note.textContent != text) note.textContent = text;
          note.classList.toggle("failed", isFailure);
        }

        async function update() {
          if (isUpdating || document.hidden || isSelecting()) return;
          isUpdating = true;
          try {
            show(await read());
            say("Updated every 15 seconds.", false);
          } catch {
            say(`Not updated since ${main.dataset.at}: the worker does not answer.`, true);
          }
          isUpdating = false;
        }

        if (main.dataset.at) {
          say("Updated every 15 seconds.", false);
          setInterval(update, 15000);
          document.addEventListener("visibilitychange", update);
        }

        """
}
