package import Worker

/// Checks everything that the worker depends on, and changes nothing.
struct Doctor: Sendable {
    let context: CommandContext

    /// Runs the checks one after another and reports each result immediately, because some take time.
    func examine(report: (Diagnosis) -> Void) async throws -> [Diagnosis] {
        var all: [Diagnosis] = []
        func add(_ diagnoses: [Diagnosis]) {
            diagnoses.forEach(report)
            all += diagnoses
        }
        add(becomeServiceUser())
        add(try await BlockingCallQueue.files.run { fileDiagnoses() + servingDiagnoses() })
        add(try await databaseDiagnoses())
        add(try await BlockingCallQueue.files.run { spillDiagnoses() })
        add(try await clockDiagnoses())
        add(await endpointDiagnoses())
        return all
    }
}

extension CommandContext {
    /// `doctor`: checks the installation.
    package func examine(isJSON: Bool = false) async throws -> ExitCode {
        guard !isJSON else {
            let diagnoses = try await Doctor(context: self).examine { _ in }
            Output.standard.line(Diagnosis.json(of: diagnoses))
            return Diagnosis.exitCode(of: diagnoses)
        }
        let isPlain = !(inputs.environment["NO_COLOR"] ?? "").isEmpty  // https://no-color.org
        let isColoured = Output.standard.isTerminal && !isPlain
        let diagnoses = try await Doctor(context: self).examine { diagnosis in
            Output.standard.line(diagnosis.line(isColoured: isColoured))
        }
        Output.standard.line(Diagnosis.summary(of: diagnoses))
        return Diagnosis.exitCode(of: diagnoses)
    }
}
