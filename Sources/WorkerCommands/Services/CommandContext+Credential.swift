import AccountAPI
import Secrets
package import WorkerConfiguration
import WorkerLifecycle

/// `services credential`: makes a credential for a service.
extension CommandContext {
    package func makeCredential(of service: String) throws -> ExitCode {
        guard let credential = ServiceCredential(forService: service, random: random) else {
            let problem = "a service's name \(ServiceCredential.nameRule)"
            throw CommandFailure(.badData, problem)
        }
        Output.standard.line("credential  \(credential.secret.reveal())")
        Output.standard.line("entry       \(credential.entry)")
        return .success
    }
}
