extension CommandSpecification {
    /// The commands about the services that tokens are vended to.
    static let services = CommandSpecification(
        words: ["services"],
        summary: "make credentials and handles for services that may get tokens",
        discussion: [
            """
            The services are listed in a file, each with the hash of its credential, its permitted scopes and its \
            permitted users. docs/vending.md describes the file and how a service uses its credential. The file also \
            lists the operators, who look up users on the status page.
            """
        ],
        exitCodes: [.usage],
        subcommands: [credential, handle]
    )

    private static let credential = CommandSpecification(
        words: ["services", "credential"],
        summary: "make a new credential for a service or an operator",
        discussion: [
            """
            Prints the credential, and below it the entry for the services file. The credential is printed only once \
            and not stored: give it to the service. Put the entry into the list "services" of the file that \
            --services-file names, narrow its scopes and users, and send SIGHUP to the worker.
            """
        ],
        operands: [.service("the service's name in the services file and in the audit")],
        options: [
            OptionSpecification(
                name: "operator",
                kind: .toggle,
                summary: "make it for a person who looks up users on the status page and gets no tokens"
            ),
            .jsonObject,
        ],
        examples: [
            Example(line: "refresh-worker services credential mailer", purpose: "let the service mailer get tokens"),
            Example(
                line: "refresh-worker services credential --operator jane",
                purpose: "let jane look up users on the status page"
            ),
        ],
        exitCodes: [.success, .usage, .badData, .inputOutput],
        make: {
            .makeCredential(service: $0.operand, isOperator: $0.has("operator"), isJSON: $0.has("json"))
        }
    )

    private static let handle = CommandSpecification(
        words: ["services", "handle"],
        summary: "print a handle, which names a user to one service",
        discussion: [
            """
            A service sends the handle to POST /oauth2/token as its refresh token, in place of the user's id \
            (docs/services.md). The handle is the sealed id: it works only with the credential that the services file \
            has for the service now, and ends when that credential is replaced. Nothing is stored, and the same user \
            always gets the same handle. It does not check that the user exists.
            """
        ],
        operands: [.service("a service of the services file"), .user("the user whose tokens the service gets")],
        options: [.jsonObject],
        settings: [.config, .servicesFile],
        examples: [
            Example(line: "refresh-worker services handle mailer alice", purpose: "name alice to the service mailer")
        ],
        exitCodes: [.success, .usage, .badData, .inputOutput, .configuration],
        make: { .makeHandle(service: $0.operands[0], user: $0.operands[1], isJSON: $0.has("json")) }
    )
}
