import Base
import Crypto
import Routes
import Storage

extension Command {
    /// `services credential`: makes a credential for a service or an operator.
    static let makeCredential = Command(
        words: ["services", "credential"],
        summary: "make a new credential for a service or an operator",
        discussion: """
            Prints the credential, and below it the entry for the services file. The credential is printed only once \
            and not stored: give it to the service. Put the entry into the list "services" of the file that \
            --services-file names, narrow its scopes and users, and send SIGHUP to the worker.
            """,
        operands: [.service("the service's name in the services file and in the audit")],
        options: [
            .toggle("operator", "make it for a person who looks up users on the status page and gets no tokens"),
            .jsonObject,
        ],
        examples: [
            "refresh-worker services credential mailer": "let the service mailer get tokens",
            "refresh-worker services credential --operator jane": "let jane look up users on the status page",
        ],
        exitCodes: [.success, .usage, .badData, .inputOutput]
    ) { arguments, context, output in
        let service = arguments.operand
        guard let credential = try ServiceCredential(forService: service, isOperator: arguments.has("operator")) else {
            throw CommandError(.badData, "a service's name \(ServiceCredential.nameRule)")
        }
        let secret = credential.secret.reveal()
        output.answer("credential  \(secret)\nentry       \(credential.entry)") { line in
            line.field("service", service)
            line.field("credential", secret)
            line.object("entry") { credential.writeEntry(to: &$0) }
        }
        return .success
    }

    /// `services handle`: prints the handle of a user for a service.
    static let makeHandle = Command(
        words: ["services", "handle"],
        summary: "print a handle, which names a user to one service",
        discussion: """
            A service sends the handle to POST /oauth2/token as its refresh token, in place of the user's id \
            (docs/services.md). The handle is the sealed id: it works only with the credential that the services file \
            has for the service now, and ends when that credential is replaced. Nothing is stored, and the same user \
            always gets the same handle. It does not check that the user exists.

            With --connection, the handle names a connection, and gets the token of no other. Without it, a request \
            can name one beside the handle, and gets the one of "default" if it does not.
            """,
        operands: [.service("a service of the services file"), .user("the user whose tokens the service gets")],
        options: [.connectionOfHandle, .jsonObject],
        settings: [.config, .servicesFile],
        examples: ["refresh-worker services handle mailer alice": "name alice to the service mailer"],
        exitCodes: [.success, .usage, .badData, .inputOutput, .configuration]
    ) { arguments, context, output in
        let (service, user) = (arguments.operands[0], arguments.operands[1])
        let named = arguments.has("connection") ? arguments.connection : nil
        let handle = try context.readServices().handle(of: user, connection: named, for: service)
        output.answer(handle) { line in
            line.field("service", service)
            line.field("user_id", user)
            if let named { line.field("connection", named.description) }
            line.field("handle", handle)
        }
        return .success
    }
}

extension ServiceList {
    /// Returns the handle of a user for a service that may have the user's tokens.
    func handle(of user: String, connection: ConnectionID?, for name: String) throws -> String {
        guard let service = service(named: name) else {
            throw CommandError(.badData, "the services file does not have a service named \(DisplayedText(name))")
        }
        guard service.mayHaveTokens(ofUser: user, connection: connection) else {
            let problem =
                """
                the services file does not let \(name) have tokens of user \(DisplayedText(user)): see "scopes" and \
                "users" and "connections" there
                """
            throw CommandError(.badData, problem)
        }
        return try service.handle(of: user, connection: connection)
    }
}
