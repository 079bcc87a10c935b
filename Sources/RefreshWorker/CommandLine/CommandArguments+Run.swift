import Storage

extension CommandArguments {
    /// Runs the command.
    func run(in context: CommandContext) async throws -> ExitCode {
        guard text == nil, let run = command.run else {
            Output.standard.write(text ?? "")
            return .success
        }
        let output = CommandOutput(isJSON: printsJSON, environment: context.inputs.environment)
        do {
            return try await run(self, context, output)
        } catch let error as StoreError {
            throw await error.confirmed
        }
    }
}
