extension Command {
    /// `help`: the help of a command, a manual page, or the completions of a shell.
    static let showHelp = Command(
        words: ["help"],
        summary: "explain a command",
        discussion: "refresh-worker help COMMAND and refresh-worker COMMAND --help are the same, and so is -h.",
        options: [
            OptionSpecification(
                "format",
                .choice(HelpForm.allCases.map(\.rawValue), as: "FORM"),
                """
                print a manual page or the completions of a shell, for an installation: \
                \(HelpForm.allCases.map(\.rawValue).joined(separator: ", "))
                """
            )
        ],
        examples: [
            "refresh-worker help grants import": "explain grants import",
            "refresh-worker help --format bash > ~/.local/share/bash-completion/completions/refresh-worker":
                "completions where make install did not put them",
        ],
        exitCodes: [.success, .usage],
        text: { arguments in
            (HelpForm(rawValue: arguments["format"] ?? "") ?? .commandManual).text(of: .program)
        },
        run: nil
    )
}
