import Base
import Testing

@Suite("Text from outside, for people")
struct EscapedTextTests {
    @Test(
        "shows joiners that names need, and escapes what could rewrite a message or hide in a name",
        arguments: [
            ("می\u{200c}خواهم", "می\u{200c}خواهم"), ("क्\u{200d}ष", "क्\u{200d}ष"),
            ("👩\u{200d}💻", "👩\u{200d}💻"), ("🏳\u{fe0f}\u{200d}🌈", "🏳\u{fe0f}\u{200d}🌈"),
            ("al\u{200c}ice", #"al\u{200c}ice"#), ("1\u{200d}2", #"1\u{200d}2"#),
            ("می\u{200c}", #"می\u{200c}"#), ("\u{200d}💻", #"\u{200d}💻"#),
            ("می\u{200c}\u{200c}خ", #"می\u{200c}\u{200c}خ"#), ("a\u{202e}b", #"a\u{202e}b"#),
            ("a\u{1b}[2J", #"a\u{1b}[2J"#), ("Zoë Ørsted", "Zoë Ørsted"),
        ]
    )
    func escaped(text: String, shown: String) {
        #expect(text.escapingInvisible == shown)
        #expect(DisplayedText(text).description == "'\(shown)'")
    }
}
