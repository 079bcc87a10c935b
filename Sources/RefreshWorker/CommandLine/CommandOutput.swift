import Base

/// The form in which a command prints its result.
struct CommandOutput: Sendable {
    /// `true` for one JSON object, which `--json` asks for, instead of a text.
    let isJSON: Bool
    /// `true` if the result is for a terminal whose user has not refused colours.
    let isColoured: Bool

    /// The form of a text.
    var form: TextForm { TextForm(terminalWidth: Output.standard.width, isColoured: isColoured) }

    init(isJSON: Bool, environment: [String: String]) {
        let refusesColours = !(environment["NO_COLOR"] ?? "").isEmpty  // https://no-color.org
        self.isJSON = isJSON
        isColoured = Output.standard.isTerminal && !refusesColours
    }

    func answer(_ text: @autoclosure () -> String, json write: (inout JSONLine) -> Void) {
        guard isJSON else { return Output.standard.line(text()) }
        var line = JSONLine()
        write(&line)
        Output.standard.line(line.bytes)
    }
}
