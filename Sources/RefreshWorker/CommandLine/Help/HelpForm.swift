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
