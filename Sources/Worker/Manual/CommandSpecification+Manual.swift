extension CommandSpecification {
    /// The page refresh-worker(1).
    var manual: String {
        var page = ManualPage(name: "refresh-worker", section: 1, summary: summary)
        page.section("SYNOPSIS")
        page.verbatim(usageLines)
        page.section("DESCRIPTION")
        discussion.forEach { page.paragraph($0) }
        page.section("COMMANDS")
        for command in tree.dropFirst() where command.make != nil {
            command.describe(on: &page)
        }
        page.section("OPTIONS")
        page.paragraph("Each setting is a flag of every command. refresh-worker.conf(5) explains them in full.")
        page.definitions(Setting.all.map { ($0.usage, $0.summary.firstSentence.sentence) })
        page.section("EXIT STATUS")
        page.definitions(ExitCode.allCases.map { (String($0.rawValue), $0.meaning.sentence) })
        page.section("EXAMPLES")
        page.examples(examples)
        page.section("FILES")
        page.definitions(Setting.files)
        page.section("SEE ALSO")
        page.paragraph("refresh-worker.conf(5), docs/running.md")
        return page.text
    }

    private func describe(on page: inout ManualPage) {
        page.subsection(words.joined(separator: " "))
        page.verbatim(usageLines)
        page.paragraph(summary.sentence)
        discussion.forEach { page.paragraph($0) }
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
            The file that --config names holds one KEY=value on each line, in the syntax of systemd's EnvironmentFile; \
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
        page.paragraph("refresh-worker(1), docs/running.md, docs/serving.md")
        return page.text
    }

    fileprivate static var files: [(term: String, explanation: String)] {
        [
            ("/etc/refresh-worker/refresh-worker.conf", "The configuration file of the service."),
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
