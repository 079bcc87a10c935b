import Testing

@testable import Status

@Suite("The Markdown of a line")
struct MarkdownTests {
    @Test("becomes code, bold text and the words of links")
    func marks() {
        let line = "**Look:** `a < b`, [the *page*](x.md#y) and a [ or a ` or 2 * 3 & <b>"
        #expect(
            HTML(markdown: line).markup
                == "<strong>Look:</strong> <code>a &lt; b</code>, the *page* and a [ or a ` or 2 * 3 &amp; &lt;b&gt;"
        )
    }
}
