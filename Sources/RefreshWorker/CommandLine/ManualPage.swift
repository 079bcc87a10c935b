/// Lays out a manual page in the macros of man(7) (https://man7.org/linux/man-pages/man7/man.7.html).
///
/// `make install` and `make deb` write the pages by `refresh-worker help --format`. The repository has no copies, which
/// each change of an option would have to update.
struct ManualPage {
    /// The width of a line before it is escaped.
    private static let width = 66

    private var lines: [String]

    var text: String { lines.joined(separator: "\n") + "\n" }

    init(name: String, section: Int, summary: String) {
        lines = [
            ".\\\" Written by: refresh-worker help --format \(name).\(section)",
            // Without a date, so that two builds of one version are the same.
            ".TH \(name.uppercased()) \(section) \"\" \"refresh-worker \(Version.current)\"",
            // No hyphens inside of names that users copy.
            ".nh",
            ".ad l",
            ".SH NAME",
            "\(name) \\- \(Self.escaped(summary))",
        ]
    }

    mutating func section(_ title: String) {
        lines.append(".SH \(title)")
    }

    mutating func subsection(_ title: String) {
        lines.append(".SS \"\(Self.escaped(title))\"")
    }

    mutating func paragraph(_ text: String) {
        beginParagraph()
        append(text)
    }

    /// Adds lines that are neither joined nor broken.
    mutating func verbatim(_ text: [String]) {
        beginParagraph()
        lines += [".nf"] + text.map(Self.line) + [".fi"]
    }

    mutating func definitions(_ entries: [(term: String, explanation: String)]) {
        for (term, explanation) in entries {
            lines += [".TP", ".B \(Self.escaped(term))"]
            append(explanation)
        }
    }

    mutating func examples(_ examples: KeyValuePairs<String, String>) {
        for (line, purpose) in examples {
            paragraph("Example, \(purpose):")
            lines += [".PP", ".RS 4", ".nf", Self.line(line), ".fi", ".RE"]
        }
    }

    /// A heading begins a paragraph too.
    private mutating func beginParagraph() {
        guard let last = lines.last, !last.hasPrefix(".S") else { return }
        lines.append(".PP")
    }

    private mutating func append(_ text: String) {
        lines += HelpPage.wrap(text, width: Self.width).map(Self.line)
    }

    /// Returns a line of text that is not taken for a request, although it begins like one.
    private static func line(_ text: String) -> String {
        let escaped = escaped(text)
        return escaped.hasPrefix(".") ? "\\&" + escaped : escaped
    }

    /// Escapes what troff would replace: users copy flags, paths and quotes from the page.
    private static func escaped(_ text: String) -> String {
        text.map { character in
            switch character {
            case "\\": "\\e"
            case "-": "\\-"
            case "'": "\\(aq"
            case "\"": "\\(dq"
            case "`": "\\(ga"
            case "^": "\\(ha"
            case "~": "\\(ti"
            default: String(character)
            }
        }.joined()
    }
}

extension Command {
    /// The page refresh-worker(1).
    var manual: String {
        var page = ManualPage(name: "refresh-worker", section: 1, summary: summary)
        page.section("SYNOPSIS")
        page.verbatim(usageLines)
        page.section("DESCRIPTION")
        paragraphs.forEach { page.paragraph($0) }
        page.section("COMMANDS")
        for command in tree.dropFirst() where !command.isGroup {
            command.describe(on: &page)
        }
        page.section("OPTIONS")
        page.paragraph("Each setting is a flag of every command. refresh-worker.conf(5) explains them in full.")
        page.definitions(Setting.all.map { ($0.usage, $0.summary.firstSentence.sentence) })
        page.definitions([("--no-switch", Command.noSwitchSummary.sentence)])
        page.section("EXIT STATUS")
        page.definitions(ExitCode.allCases.map { (String($0.rawValue), $0.meaning.sentence) })
        page.section("EXAMPLES")
        page.examples(examples)
        page.section("FILES")
        page.definitions(Setting.files)
        page.section("SEE ALSO")
        page.paragraph("refresh-worker.conf(5), docs/operate.md")
        return page.text
    }

    private func describe(on page: inout ManualPage) {
        page.subsection(words.joined(separator: " "))
        page.verbatim(usageLines)
        page.paragraph(summary.sentence)
        paragraphs.forEach { page.paragraph($0) }
        page.definitions(operands.map { ($0.placeholder, $0.summary.sentence) })
        page.definitions(options.map { ($0.usage, $0.summary.sentence) })
        if !settings.isEmpty {
            page.paragraph("Settings that matter: \(settings.map { "--\($0.rawValue)" }.joined(separator: ", ")).")
        }
        page.paragraph("Exit codes: \(exitCodes.map { "\($0.rawValue)" }.joined(separator: ", ")).")
        page.examples(examples)
    }
}

extension Setting {
    /// The page refresh-worker.conf(5).
    static var manual: String {
        var page = ManualPage(
            name: "refresh-worker.conf",
            section: 5,
            summary: "the settings of refresh-worker and their file"
        )
        page.section("DESCRIPTION")
        page.paragraph(
            """
            The configuration file holds one KEY=value on each line, in the syntax of systemd's EnvironmentFile; \
            lines that begin with # are comments. Each key is also an environment variable, and a flag of \
            refresh-worker(1). Flags take precedence over the environment, and the environment over the file. An empty \
            value counts as not set.
            """
        )
        page.paragraph(
            """
            A changed setting takes a restart, unless its description says that a reload applies it. Tokens and keys \
            never belong in this file.
            """
        )
        page.section("SETTINGS")
        page.definitions(
            all.map { setting in
                let value = setting.placeholder ?? "yes"
                let explanation = [
                    setting.summary, setting.change.note, setting.shownDefault.map { "Default: \($0)" },
                    "The flag is \(setting.flag).",
                ]
                return (
                    "\(setting.name.environmentName)=\(value)",
                    explanation.compactMap { $0?.sentence }.joined(separator: " ")
                )
            }
        )
        page.section("FILES")
        page.definitions(files)
        page.section("SEE ALSO")
        page.paragraph("refresh-worker(1), docs/operate.md, docs/app.md")
        return page.text
    }

    fileprivate static var files: [(term: String, explanation: String)] {
        [
            (Installation.file, "The configuration file of the service."),
            (named(.keyFile)?.defaultValue ?? "", "The key ring, unless a setting names another."),
            (named(.database)?.defaultValue ?? "", "The database, unless a setting names another."),
        ]
    }
}

extension String {
    /// The text with a capital letter and a full stop.
    fileprivate var sentence: String {
        let start = prefix(1).uppercased() + dropFirst()
        return start.hasSuffix(".") ? start : start + "."
    }

    /// The text up to its first full stop or semicolon.
    var firstSentence: String {
        let end = [". ", "; "].compactMap { firstRange(of: $0)?.lowerBound }.min()
        let sentence = end.map { self[..<$0] } ?? self[...]
        return String(sentence.last == "." ? sentence.dropLast() : sentence)
    }
}

/// A form of the help that an installation keeps in a file: a manual page, or the completions of a shell.
enum HelpForm: String, CaseIterable, Sendable {
    case commandManual = "refresh-worker.1"
    case settingsManual = "refresh-worker.conf.5"
    case bash
    case zsh
    case fish

    func text(of program: Command) -> String {
        switch self {
        case .commandManual: program.manual
        case .settingsManual: Setting.manual
        case .bash: CompletionTable(program).bash
        case .zsh: CompletionTable(program).zsh
        case .fish: CompletionTable(program).fish
        }
    }
}
