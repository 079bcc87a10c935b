import Testing

@testable import GoogleOAuth

@Suite("The text of an error")
struct ErrorTextTests {
    @Test("It is Google's error and description")
    func wording() {
        let text = read(400, #"{"error":"invalid_grant","error_description":"Token has been expired or revoked."}"#)
            .text
        #expect(text == "invalid_grant: Token has been expired or revoked.")
        #expect(read(400, #"{"error":"invalid_grant"}"#).text == "invalid_grant")
        #expect(read(502, "<html>").text == nil)
        #expect(read(400, #"{"error_description":"alone"}"#).text == nil)
        #expect(read(400, #"{"error":7,"error_description":"x"}"#).text == nil)
    }

    @Test("It has at most 256 bytes, and no partial character at its end", arguments: ["a", "é", "字", "👩‍👩‍👧"])
    func cap(character: String) throws {
        for offset in 0..<4 {
            let word = String(repeating: "-", count: offset) + String(repeating: character, count: 2)
            let description = Array(repeating: word, count: 150).joined(separator: " ")
            let text = try #require(read(400, #"{"error":"x","error_description":"\#(description)"}"#).text)
            #expect(text.utf8.count <= 256)
            #expect(text.utf8.count > 200)
            #expect(!text.contains("\u{FFFD}"))
        }
    }

    @Test("A word that is long enough to be another token is left out")
    func longWords() throws {
        let text = try #require(
            read(400, #"{"error":"x","error_description":"token ya29.\#(String(repeating: "a", count: 60)) is odd"}"#)
                .text
        )
        #expect(text == "x: token (65 bytes) is odd")
    }

    @Test(
        "It never contains sixteen characters of the token or the client secret that was sent",
        arguments: [sentToken, sentClientSecret]
    )
    func noPartOfSecret(secret: String) throws {
        let length = secret.count
        for start in 0...(length - 16) {
            for end in [start + 16, length] {
                let piece = String(Array(secret)[start..<end])
                for body in [
                    #"{"error":"invalid_grant","error_description":"bad token: \#(piece)!"}"#,
                    #"{"error":"\#(piece)"}"#, #"{"error":"emm_\#(piece)"}"#,
                    #"{"error":"invalid_request","error_description":"\#(String(repeating: "x", count: 250))\#(piece)"}"#,
                ] {
                    let answer = read(400, body)
                    #expect(!holdsPiece(of: secret, answer.text ?? ""), "\(start)..<\(end)")
                    #expect(!holdsPiece(of: secret, answer.verdict.code), "\(start)..<\(end)")
                }
            }
        }
    }

    @Test("The code, which is logged and stored as the reason, does not contain it either")
    func codeIsACode() {
        for error in [
            "", " ", "Invalid Grant", "two words", "UPPER", "emm_ \u{1b}[31m", "emm_Ünsinn", "a\nb", "<script>",
            String(repeating: "a", count: 65), "emm_" + String(repeating: "a", count: 61),
        ] {
            let body = #"{"error":"\#(error.replacing("\n", with: "\\n").replacing("\u{1b}", with: "\\u001b"))"}"#
            let verdict = read(400, body).verdict
            let isCode = verdict.code.utf8.allSatisfy {
                (0x61...0x7a).contains($0) || (0x30...0x39).contains($0) || $0 == 0x5f
            }
            #expect(isCode && (1...64).contains(verdict.code.utf8.count), "\(verdict.code.debugDescription)")
            #expect(verdict.kind == (error.hasPrefix("emm_") ? .signInRequired : .unknown))
        }
    }

    private func holdsPiece(of secret: String, _ text: String) -> Bool {
        let token = Array(secret)
        return (0...(token.count - 16)).contains { text.contains(String(token[$0..<$0 + 16])) }
    }
}
