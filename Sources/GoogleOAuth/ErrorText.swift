internal import JSON
internal import Secrets

/// The wording of an error for logs.
enum ErrorText {
    static let longest = 256
    /// No word of a human's is longer than this; a token is.
    static let longestWord = 40

    /// `error` and `error_description` of the answer, capped; withheld where it repeats the token that was sent, and
    /// without any word that is long enough to be another token.
    static func excerpt(of body: JSONValue?, without sent: Secret) -> String? {
        guard let error = body?["error"]?.string else { return nil }
        var text = error
        if let description = body?["error_description"]?.string { text += ": " + description }
        guard !contains(text, sent) else { return "(an answer that repeats the token)" }
        let words = text.split(separator: " ", omittingEmptySubsequences: false)
        let readable = words.map { $0.utf8.count > longestWord ? "(\($0.utf8.count) bytes)" : $0 }.joined(
            separator: " "
        )
        return readable.capped(at: longest)
    }

    /// Looks for any 16 characters of the token, so that half of it does not slip through either.
    static func contains(_ text: String, _ sent: Secret) -> Bool {
        let token = Array(sent.reveal().utf8)
        let width = min(16, token.count)
        guard width > 0 else { return false }
        let haystack = Array(text.utf8)
        guard haystack.count >= width else { return false }
        let pieces = Set((0...(token.count - width)).map { ArraySlice(token[$0..<$0 + width]) })
        return (0...(haystack.count - width)).contains { pieces.contains(haystack[$0..<$0 + width]) }
    }
}
