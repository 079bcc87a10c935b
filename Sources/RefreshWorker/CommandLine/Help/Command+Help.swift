import Base

extension Command {
    /// Returns the help of this command, ready to print.
    func helpText(documents: DocumentFolder, width: Int) -> String {
        var page = HelpPage(width: width)
        page.paragraph("\(invocation): \(summary)")
        page.heading("Usage")
        page.lines(usageLines(width: width))
        for paragraph in paragraphs {
            page.paragraph(documents.located(paragraph))
        }
        page.definitions("Commands", entries: subcommands.map { ($0.words.last ?? "", $0.summary) })
        page.definitions("Operands", entries: operands.map { ($0.placeholder, $0.summary) })
        page.definitions("Options", entries: optionDefinitions)
        page.definitions(
            words.isEmpty ? "Settings" : "Settings that matter here",
            entries: settings.compactMap(Self.define)
        )
        if !words.isEmpty && !settings.isEmpty {
            page.paragraph("Each setting can also be in the environment or in the file; see refresh-worker --help.")
        }
        page.examples(examples)
        page.definitions("Exit codes", entries: exitCodes.map { (String($0.rawValue), $0.meaning) })
        return page.text
    }

    func usageLines(width: Int) -> [String] {
        guard !isGroup else { return ["\(invocation) COMMAND [flags]"] }
        if words.isEmpty { return ["refresh-worker [flags]", "refresh-worker COMMAND [flags] [--help]"] }
        if words == ["help"] { return ["refresh-worker help [COMMAND]"] }
        let flags = options.map { "[\($0.usage)]" }
        let words = operands.map { $0.isOptional ? "[\($0.placeholder)]" : $0.placeholder }
        let parts = words + flags + (settings.isEmpty ? [] : ["[settings]"])
        return HelpPage.usage(of: invocation, parts: parts, width: width)
    }

    private var optionDefinitions: [(String, String)] {
        options.map { ($0.usage, $0.summary) } + [("--help, -h", "print this help")]
            + (readsConfiguration ? [("--no-switch", Self.noSwitchSummary)] : [])
            + (words.isEmpty ? [("--version [--json]", "print the version, and those of the libraries")] : [])
    }

    private static func define(_ name: Setting.Name) -> (String, String)? {
        guard let setting = Setting.named(name) else { return nil }
        let defaultValue = setting.shownDefault.map { "Default: \($0)" }
        return (
            setting.usage,
            [setting.summary, setting.change.note, defaultValue].compactMap(\.self).joined(separator: " ")
        )
    }
}
