extension CommandSpecification {
    /// The commands about the key ring.
    static let keys = CommandSpecification(
        words: ["keys"],
        summary: "make, list, rotate or retire the keys that seal tokens",
        discussion: [
            """
            Tokens are sealed in the database with a key that is not in it. The key ring is a file of mode 0600, \
            owned by the user whom the worker runs as; lose it and every user must sign in again, so keep a copy in \
            a safe place, apart from copies of the database.
            """
        ],
        settings: [.config, .keyFile],
        exitCodes: [.usage],
        subcommands: [generate, list, rotate, retire]
    )

    private static let generate = CommandSpecification(
        words: ["keys", "generate"],
        summary: "make a key ring with one new key",
        discussion: ["Creates the file named by --key-file, mode 0600. A key ring that exists is never overwritten."],
        settings: [.config, .keyFile, .logLevel],
        examples: [
            Example(
                line: "sudo -u refresh-worker refresh-worker keys generate",
                purpose: "once, before the worker's first start"
            )
        ],
        exitCodes: [.success, .usage, .internalFailure, .cannotCreate, .inputOutput, .configuration],
        make: { _ in .generateKeys }
    )

    private static let list = CommandSpecification(
        words: ["keys", "list"],
        summary: "list the keys by id, and how much each seals",
        discussion: ["Prints the id of each key and how many stored tokens it seals. Never the key itself."],
        settings: [.config, .database, .keyFile, .logLevel],
        examples: [Example(line: "refresh-worker keys list", purpose: "is the old key still in use?")],
        exitCodes: [.success, .usage, .internalFailure, .inputOutput, .leftForLater, .configuration],
        make: { _ in .listKeys }
    )

    private static let rotate = CommandSpecification(
        words: ["keys", "rotate"],
        summary: "put a new key first and seal everything with it",
        discussion: [
            """
            Adds a new key to the key ring, waits until every live worker reports that it holds it, then seals the \
            stored tokens anew while the workers run. When it is interrupted, running it again goes on where it \
            stopped. The old key stays in the ring until it is retired.
            """
        ],
        settings: [.config, .database, .keyFile, .logLevel],
        examples: [
            Example(
                line: "sudo -u refresh-worker refresh-worker keys rotate",
                purpose: "once a year, or after somebody left who knew the key"
            )
        ],
        exitCodes: [.success, .usage, .internalFailure, .inputOutput, .leftForLater, .configuration],
        make: { _ in .rotateKeys }
    )

    private static let retire = CommandSpecification(
        words: ["keys", "retire"],
        summary: "retire an old key, and a day later take it out",
        discussion: [
            """
            The key opens for a day more but seals nothing, because results that it sealed may still wait to be stored. \
            After that day the same command, or keys rotate, takes it out of the file. Refused with exit code 75 while a \
            stored token is sealed with the key or a live worker seals with it, and with 65 when the ring does not hold \
            it. Backups of the database from before may still need it.
            """,
            """
            Workers do not run without a key that seals stored tokens. When such a key is lost for good, --lost lets them: \
            its tokens stay unreadable, and their users must sign in again.
            """,
        ],
        operands: [.keyID("the key's id, as keys list prints it")],
        options: [
            OptionSpecification(name: "lost", kind: .toggle, summary: "give up a key that no copy of the ring holds")
        ],
        settings: [.config, .database, .keyFile, .logLevel],
        examples: [Example(line: "refresh-worker keys retire 7f3a91c2", purpose: "after keys rotate has finished")],
        exitCodes: [
            .success, .usage, .badData, .internalFailure, .inputOutput, .leftForLater, .configuration,
        ],
        make: { .retireKey(id: $0.operand, isLost: $0.has("lost")) }
    )
}
