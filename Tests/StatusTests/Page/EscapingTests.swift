import Status
import Testing

@Suite("Values on the status page")
struct EscapingTests {
    private static let hostile = [
        "<script>alert(1)</script>", "</main><img src=x onerror=alert(1)>", "\" onfocus=\"alert(1)", "' autofocus '",
        "a & b &lt; c", "]]><!--", "javascript:alert(1)",
    ]

    @Test("cannot become markup, whatever they are", arguments: hostile, [false, true])
    func structure(text: String, withUser: Bool) {
        let page = Example.everywhere(text, withUser: withUser).html
        let plain = Example.everywhere("plain", withUser: withUser).html
        #expect(Markup(page).tags == Markup(plain).tags)
        #expect(Markup(page).unbalanced.isEmpty)
        let escaped = text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
            .replacing("\"", with: "&quot;").replacing("'", with: "&#39;")
        #expect(page.ranges(of: escaped).count >= 10, "each value is shown")
        if escaped != text { #expect(!page.contains(text)) }
    }

    @Test("show the characters that would hide or reverse text", arguments: [false, true])
    func invisible(withUser: Bool) {
        let text = "a\u{202e}b\u{0}c\u{1b}[2Jd\u{200b}e\u{2028}f\ng\u{feff}h\u{ad}i\u{85}j\tk\u{e0001}"
        let page = Example.everywhere(text, withUser: withUser).html
        #expect(
            page.contains(
                #"a\u{202e}b\u{0}c\u{1b}[2Jd\u{200b}e\u{2028}f\u{a}g\u{feff}h\u{ad}i\u{85}j\u{9}k\u{e0001}"#
            )
        )
        for scalar in page.unicodeScalars where scalar != "\n" {
            #expect(
                ![.control, .format, .lineSeparator, .paragraphSeparator].contains(scalar.properties.generalCategory)
            )
        }
    }

    @Test("are cut if they are long", arguments: [false, true])
    func long(withUser: Bool) {
        let text = String(repeating: "x", count: 100_000)
        let page = Example.everywhere(text, withUser: withUser).html
        #expect(page.utf8.count < 75_000)
        #expect(page.contains("xxx…"))
    }

    @Test("of names in other scripts are shown as they are, apart from the text around them")
    func scripts() {
        let page = Example.everywhere("אבג 𝒳 é").html
        #expect(page.contains(#"<bdi class="code">אבג 𝒳 é</bdi>"#))
    }
}
