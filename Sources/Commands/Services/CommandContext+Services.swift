import Base
import Crypto
import Routes
import Telemetry
package import Worker

/// The commands about the services that tokens are vended to.
extension CommandContext {
    /// `services credential`: makes a credential for a service or an operator.
    package func makeCredential(of service: String, isOperator: Bool, isJSON: Bool) throws -> ExitCode {
        guard let credential = try ServiceCredential(forService: service, isOperator: isOperator) else {
            let problem = "a service's name \(ServiceCredential.nameRule)"
            throw CommandFailure(.badData, problem)
        }
        guard !isJSON else {
            var line = JSONLine()
            line.field("service", service)
            line.field("credential", credential.secret.reveal())
            line.object("entry") { credential.writeEntry(to: &$0) }
            Output.standard.line(line.bytes)
            return .success
        }
        Output.standard.line("credential  \(credential.secret.reveal())")
        Output.standard.line("entry       \(credential.entry)")
        return .success
    }

    /// `services handle`: prints the handle of a user for a service.
    package func makeHandle(of user: String, for service: String, isJSON: Bool) throws -> ExitCode {
        let handle = try handle(of: user, for: service)
        guard isJSON else {
            Output.standard.line(handle)
            return .success
        }
        var line = JSONLine()
        line.field("service", service)
        line.field("user_id", user)
        line.field("handle", handle)
        Output.standard.line(line.bytes)
        return .success
    }

    /// Returns the handle of a user for a service that may have the user's tokens.
    func handle(of user: String, for name: String) throws -> String {
        guard let service = try readServices().service(named: name) else {
            throw CommandFailure(.badData, "the services file does not have a service named \(DisplayedText(name))")
        }
        guard service.mayHaveTokens(ofUser: user) else {
            let problem =
                """
                the services file does not let \(name) have tokens of user \(DisplayedText(user)): see "scopes" and \
                "users" there
                """
            throw CommandFailure(.badData, problem)
        }
        return try UserHandle.make(of: user, for: service)
    }
}
