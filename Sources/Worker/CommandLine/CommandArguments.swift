/// The arguments of a command, checked against its specification.
struct CommandArguments: Sendable {
    let operands: [String]
    /// The values of the command's own flags; empty for a toggle.
    let options: [String: String]

    /// The only operand of the commands that need one.
    var operand: String { operands.first ?? "" }

    func has(_ option: String) -> Bool { options[option] != nil }

    func seconds(_ option: String, otherwise defaultValue: Int) -> Duration {
        .seconds(options[option].flatMap { Int($0) } ?? defaultValue)
    }
}
