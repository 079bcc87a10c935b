import Worker

/// `help`: the help of a command, a manual page, or the completions of a shell.
struct ShowHelp: TextCommand {
    static let specification = CommandSpecification(
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
            Example("refresh-worker help grants import", "explain grants import"),
            Example(
                "refresh-worker help --format bash > ~/.local/share/bash-completion/completions/refresh-worker",
                "completions where make install did not put them"
            ),
        ],
        exitCodes: [.success, .usage]
    )

    /// The text, ready to print.
    let text: String

    init(text: String) {
        self.text = text
    }

    init(_ arguments: CommandArguments) {
        let form = HelpForm(rawValue: arguments["format"] ?? "") ?? .commandManual
        text = form.text(of: .program)
    }
}
