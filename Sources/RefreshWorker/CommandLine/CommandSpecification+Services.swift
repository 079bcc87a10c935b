extension CommandSpecification {
    /// The commands about the services that tokens are vended to.
    static let services = CommandSpecification(
        words: ["services"],
        summary: "make credentials for the services that may have tokens",
        discussion: [
            """
            The services are named in a file, each with the hash of its credential, the scopes it may ask for and the \
            users it may have. docs/vending.md describes the file and what a service does with its credential.
            """
        ],
        exitCodes: [.usage],
        subcommands: [credential]
    )

    private static let credential = CommandSpecification(
        words: ["services", "credential"],
        summary: "make a new credential for a service",
        discussion: [
            """
            Prints the credential, and below it the entry for the services file. The credential is shown this once and \
            kept nowhere: give it to the service. Put the entry into the list "services" of the file that --services-file \
            names, narrow its scopes and users, and send SIGHUP to the worker.
            """
        ],
        operands: [.service("the service's name in the services file and in the audit")],
        examples: [
            Example(line: "refresh-worker services credential mailer", purpose: "let the service mailer ask for tokens")
        ],
        exitCodes: [.success, .usage, .badData, .inputOutput],
        make: { .makeCredential(service: $0.operand) }
    )
}
