extension CommandSpecification {
    /// The commands about the services that tokens are vended to.
    static let services = CommandSpecification(
        words: ["services"],
        summary: "make credentials for services that may get tokens",
        discussion: [
            """
            The services are listed in a file, each with the hash of its credential, its permitted scopes and its \
            permitted users. docs/vending.md describes the file and how a service uses its credential.
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
            Prints the credential, and below it the entry for the services file. The credential is printed only once \
            and not stored: give it to the service. Put the entry into the list "services" of the file that \
            --services-file names, narrow its scopes and users, and send SIGHUP to the worker.
            """
        ],
        operands: [.service("the service's name in the services file and in the audit")],
        examples: [
            Example(line: "refresh-worker services credential mailer", purpose: "let the service mailer get tokens")
        ],
        exitCodes: [.success, .usage, .badData, .inputOutput],
        make: { .makeCredential(service: $0.operand) }
    )
}
