extension Command {
    /// The page refresh-worker(1).
    var manual: String {
        var page = ManualPage(name: "refresh-worker", section: 1, summary: summary)
        page.section("SYNOPSIS")
        page.verbatim(usageLines(width: HelpPage.usualWidth))
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
        page.verbatim(usageLines(width: HelpPage.usualWidth))
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
