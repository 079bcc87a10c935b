import Base

/// The end of what a program wrote to standard error, as a message can show it: one line, short, and without keys.
///
///     ShownErrorOutput.text(of: Array("An error occurred (AccessDeniedException)\nwhen calling Decrypt\n".utf8))
///     // "An error occurred (AccessDeniedException) when calling Decrypt"
///
/// Without it, an operator would not learn that a permission is missing. The programs handle the key ring, and one with
/// tracing switched on prints what it handles. So a text that could be a key is replaced: the Base64 of a key has 44
/// characters, and its hexadecimal form 64.
enum ShownErrorOutput {
    /// The number of bytes to keep. Python's programs print their reason last, after many lines.
    static let keptBytes = 2048
    static let maximumLength = 300
    private static let minimumKeyLength = 40
    /// A shorter run is hidden too if another one is a key: Base64 is often printed in lines, and the last one is short. The
    /// id of a key has eight letters.
    private static let minimumRestLength = 9
    private static let replacement = "(hidden)"

    static func text(of bytes: [UInt8]) -> String {
        let words = String(decoding: bytes.suffix(keptBytes), as: UTF8.self).split(whereSeparator: \.isWhitespace)
        let line = hidingKeys(in: words.joined(separator: " ")).escapingInvisible
        guard line.count > maximumLength else { return line }
        return "…" + line.suffix(maximumLength - 1)
    }

    /// Replaces each long run of letters that Base64 has. Ids of AWS, Google Cloud and Vault have dashes or dots.
    private static func hidingKeys(in text: String) -> String {
        let shown = hidingRuns(in: text, ofLength: minimumKeyLength)
        return shown == text ? text : hidingRuns(in: text, ofLength: minimumRestLength)
    }

    private static func hidingRuns(in text: String, ofLength minimumLength: Int) -> String {
        var shown = ""
        var run = ""
        for character in text {
            if character.isBase64 {
                run.append(character)
                continue
            }
            shown += run.count < minimumLength ? run : replacement
            run = ""
            shown.append(character)
        }
        return shown + (run.count < minimumLength ? run : replacement)
    }
}

extension Character {
    fileprivate var isBase64: Bool {
        guard isASCII else { return false }
        return isLetter || isNumber || self == "+" || self == "/" || self == "="
    }
}
