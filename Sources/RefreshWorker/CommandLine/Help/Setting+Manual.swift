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

    static var files: [(term: String, explanation: String)] {
        [
            (Installation.file, "The configuration file of the service."),
            (named(.keyFile)?.defaultValue ?? "", "The key ring, unless a setting names another."),
            (named(.database)?.defaultValue ?? "", "The database, unless a setting names another."),
        ]
    }
}
