import Base

/// A program with its arguments, as a setting gives it.
///
///     try ExternalCommand("sh -c 'base64 -d | age --decrypt'").words
///     // ["sh", "-c", "base64 -d | age --decrypt"]
///
/// No shell takes part: blanks separate words, text in single or double quotes stands for itself, and nothing else has
/// a meaning. A backslash has none either, because the configuration file gives it one already.
struct ExternalCommand: Equatable, Sendable {
    /// The program and its arguments. The program is the whole path of a file, or a name that is looked up in PATH.
    let words: [String]

    init(_ text: String) throws(InputError) {
        words = try Self.split(text)
        guard let program = words.first, !program.isEmpty else {
            throw InputError("names no program: write its name or its whole path first")
        }
        // The folder in which a service starts is not the one in which its operator tried the command.
        guard program.isWholePath || !program.utf8.contains(UInt8(ascii: "/")) else {
            throw InputError("\(DisplayedText(program)) is neither a name nor a whole path: begin it with /")
        }
    }

    var program: String { words[0] }

    /// The program's file, if the setting names that.
    var programFile: String? { program.isWholePath ? program : nil }

    private static func split(_ text: String) throws(InputError) -> [String] {
        var words: [String] = []
        var word: String.UnicodeScalarView?
        var quote: Unicode.Scalar?
        // By scalars: Swift joins a quote and an accent after it into one character.
        for scalar in text.unicodeScalars {
            if let open = quote {
                if scalar == open { quote = nil } else { word?.append(scalar) }
            } else if scalar == "'" || scalar == "\"" {
                quote = scalar
                // Two quotes with nothing in between are an empty word.
                word = word ?? String.UnicodeScalarView()
            } else if scalar == " " || scalar == "\t" {
                if let ended = word { words.append(String(ended)) }
                word = nil
            } else {
                word = word ?? String.UnicodeScalarView()
                word?.append(scalar)
            }
        }
        guard quote == nil else {
            throw InputError("opens a quote that is never closed: put it between quotes of the other kind")
        }
        if let last = word { words.append(String(last)) }
        return words
    }
}

extension String {
    fileprivate var isWholePath: Bool { utf8.first == UInt8(ascii: "/") }
}
