package import WorkerConfiguration
import WorkerLifecycle

/// Checks everything that the worker depends on, and changes nothing.
struct Doctor: Sendable {
    let context: CommandContext

    /// Makes the checks in turn and reports each result at once, because some take time.
    func examine(_ tell: (Diagnosis) -> Void) async throws -> [Diagnosis] {
        var all: [Diagnosis] = []
        func take(_ diagnoses: [Diagnosis]) {
            diagnoses.forEach(tell)
            all += diagnoses
        }
        take(try await BlockingCallQueue.files.run { fileDiagnoses() + servingDiagnoses() })
        take(try await databaseDiagnoses())
        take(try await BlockingCallQueue.files.run { spillDiagnoses() })
        take(try await clockDiagnoses())
        take(await endpointDiagnoses())
        return all
    }
}

extension CommandContext {
    /// `doctor`: checks the installation.
    package func examine() async throws -> ExitCode {
        let isPlain = !(inputs.environment["NO_COLOR"] ?? "").isEmpty  // https://no-color.org
        let isColoured = Output.standard.isTerminal && !isPlain
        let diagnoses = try await Doctor(context: self).examine { diagnosis in
            Output.standard.line(diagnosis.line(isColoured: isColoured))
        }
        Output.standard.line(Diagnosis.summary(of: diagnoses))
        return Diagnosis.exitCode(of: diagnoses)
    }
}
