import Base

/// Separates flags from words before the command is known: flags can precede it.
struct ArgumentScanner {
    /// A flag as it was given.
    struct Flag: Sendable {
        let name: String
        /// `nil` if the flag does not take a value.
        var value: String?
    }

    private(set) var words: [String] = []
    private(set) var flags: [Flag] = []
    private(set) var problems: [String] = []
    private(set) var asksForHelp = false
    private(set) var asksForVersion = false
    private(set) var staysRoot = false

    private var rest: ArraySlice<String>
    /// `true` for each known flag that takes a value. A name means the same in every command, which a test checks.
    private let takesValue: [String: Bool]

    init(_ arguments: [String], program: Command) {
        rest = arguments[...]
        takesValue = Self.knownFlags(of: program)
        while let argument = rest.popFirst() {
            if argument == "--" {
                rest.forEach { addWord($0) }
                rest = []
            } else if argument.hasPrefix("--") {
                readFlag(argument)
            } else if argument == "-h" {
                asksForHelp = true
            } else if argument.hasPrefix("-") && argument != "-" {
                problems.append("unknown flag \(DisplayedText(argument)): flags begin with two dashes")
            } else {
                addWord(argument)
            }
        }
    }

    private static func knownFlags(of program: Command) -> [String: Bool] {
        var known: [String: Bool] = [:]
        for setting in Setting.all {
            known[setting.name.rawValue] = setting.placeholder != nil
        }
        for option in program.tree.flatMap(\.options) {
            known[option.name] = option.placeholder != nil
        }
        return known
    }

    private mutating func addWord(_ word: String) {
        if word.holdsCredential {
            problems.append(
                """
                argument \(words.count + 1) looks like a token or a secret (not shown), and those are never arguments, \
                because every user of this machine can read them: give it on standard input or in a file, and treat \
                this one as compromised
                """
            )
        }
        words.append(word)
    }

    private mutating func readFlag(_ argument: String) {
        let name = String(argument.dropFirst(2).prefix { $0 != "=" })
        let attached = argument.contains("=") ? String(argument.dropFirst(name.count + 3)) : nil
        switch (name, attached) {
        case ("help", nil): asksForHelp = true
        case ("version", nil): asksForVersion = true
        case ("no-switch", nil): staysRoot = true
        default: readKnownFlag(name, attached: attached)
        }
    }

    private mutating func readKnownFlag(_ name: String, attached: String?) {
        switch (takesValue[name], attached) {
        case (nil, _):
            reportUnknown(name)
        case (false?, nil):
            flags.append(Flag(name: name))
        case (false?, _?):
            problems.append("--\(name) takes no value")
        case (true?, let value?):
            addFlag(name, value: value)
        case (true?, nil):
            // A flag in the place of a value means that the value was forgotten. Such a value can be given as
            // --name=--x.
            guard let value = rest.first, !value.hasPrefix("--") else {
                problems.append("--\(name) needs a value")
                return
            }
            rest.removeFirst()
            addFlag(name, value: value)
        }
    }

    private mutating func addFlag(_ name: String, value: String) {
        if value.holdsCredential {
            problems.append(
                """
                the value of --\(name) looks like a token or a secret (not shown), and those are never arguments, \
                because every user of this machine can read them: give it on standard input or in a file, and treat \
                this one as compromised
                """
            )
        } else if value.isEmpty {
            problems.append("the value of --\(name) is empty")
        } else {
            flags.append(Flag(name: name, value: value))
        }
    }

    private mutating func reportUnknown(_ name: String) {
        let candidates = takesValue.keys.sorted() + ["help", "version", "no-switch"]
        var hint = ""
        if let nearest = name.nearest(among: candidates) {
            hint = "; did you mean --\(nearest)?"
        } else if name.contains("token") || name.contains("secret") {
            hint = "; tokens and secrets are never arguments: give them on standard input or in a file"
        }
        problems.append("unknown flag \(DisplayedText("--" + name))\(hint)")
    }
}
