extension Command {
    /// `completion`: the completions of a shell, by the name under which people look for them.
    static let completion = Command(
        words: ["completion"],
        summary: "print the completions of a shell",
        discussion: """
            Prints what a shell reads to complete commands, flags and values. The package and make install have put \
            all three in place.
            """,
        subcommands: [
            completions(
                of: .bash,
                example: "refresh-worker completion bash > ~/.local/share/bash-completion/completions/refresh-worker"
            ),
            completions(of: .zsh, example: "refresh-worker completion zsh > ~/.zfunc/_refresh-worker"),
            completions(
                of: .fish,
                example: "refresh-worker completion fish > ~/.config/fish/completions/refresh-worker.fish"
            ),
        ],
        run: nil
    )

    private static func completions(of form: HelpForm, example: String) -> Command {
        Command(
            words: ["completion", form.rawValue],
            summary: "print the completions of \(form.rawValue)",
            discussion: "help --format \(form.rawValue) prints the same.",
            examples: [example: "for one user"],
            exitCodes: [.success, .usage],
            text: { _ in form.text(of: .program) },
            run: nil
        )
    }
}
