internal import Base
internal import Crypto

/// The text of an error, for logs.
enum ErrorText {
    static let maximumBytes = 256
    /// Words in a human language are shorter than this; tokens are longer.
    static let longestWord = 40

    /// Returns the `error` and `error_description` of the answer, shortened.
    ///
    /// Words that are long enough to be a token are replaced by their length. If the text repeats a secret that was
    /// sent, all of it is omitted.
    static func excerpt(of body: JSONValue?, without sent: [Secret]) -> String? {
        guard let error = body?["error"]?.string else { return nil }
        var text = error
        if let description = body?["error_description"]?.string { text += ": " + description }
        guard !contains(text, sent) else { return "(an answer that repeats a secret of the request)" }
        let words = text.split(separator: " ", omittingEmptySubsequences: false)
        let readable = words.map { $0.utf8.count > longestWord ? "(\($0.utf8.count) bytes)" : $0 }.joined(
            separator: " "
        )
        return readable.capped(at: maximumBytes)
    }

    /// Returns `true` if the text contains any 16 characters of a secret, so that a part of it is also found.
    static func contains(_ text: String, _ sent: [Secret]) -> Bool {
        sent.contains { contains(text, $0) }
    }

    private static func contains(_ text: String, _ secret: Secret) -> Bool {
        let token = Array(secret.reveal().utf8)
        let width = min(16, token.count)
        guard width > 0 else { return false }
        let haystack = Array(text.utf8)
        guard haystack.count >= width else { return false }
        let pieces = Set((0...(token.count - width)).map { ArraySlice(token[$0..<$0 + width]) })
        return (0...(haystack.count - width)).contains { pieces.contains(haystack[$0..<$0 + width]) }
    }
}
