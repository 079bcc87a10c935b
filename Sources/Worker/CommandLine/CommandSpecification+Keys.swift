extension CommandSpecification {
    /// The commands about the key ring.
    static let keys = CommandSpecification(
        words: ["keys"],
        summary: "make, list, rotate or retire the keys that seal tokens",
        discussion: [
            """
            Tokens in the database are sealed with a key from the key ring, a file of mode 0600 that belongs to the \
            user of the worker. Without it every user must sign in again, so keep a copy in a safe place, apart from \
            copies of the database.
            """
        ],
        settings: [.config, .keyFile],
        exitCodes: [.usage],
        subcommands: [generate, list, rotate, retire]
    )

    private static let generate = CommandSpecification(
        words: ["keys", "generate"],
        summary: "make a key ring with one new key",
        discussion: [
            """
            Creates the file named by --key-file, mode 0600. An existing key ring is never overwritten. The command \
            refuses while the database holds tokens, because a new key ring opens none of them. If no copy of the \
            former key ring exists, --lost makes a new one.
            """
        ],
        options: [
            OptionSpecification(name: "lost", kind: .toggle, summary: "give up the tokens of a key ring that is lost"),
            .jsonObject,
        ],
        settings: [.config, .database, .keyFile, .logLevel],
        examples: [
            Example(
                line: "sudo -u refresh-worker refresh-worker keys generate",
                purpose: "once, before the worker's first start"
            )
        ],
        exitCodes: [.success, .usage, .internalFailure, .cannotCreate, .inputOutput, .configuration],
        make: { .generateKeys(isLost: $0.has("lost"), isJSON: $0.has("json")) }
    )

    private static let list = CommandSpecification(
        words: ["keys", "list"],
        summary: "list the keys by id, and the number of tokens that each seals",
        discussion: ["Prints the id of each key and the number of stored tokens that it seals, never the key itself."],
        options: [.json],
        settings: [.config, .database, .keyFile, .logLevel],
        examples: [Example(line: "refresh-worker keys list", purpose: "is the old key still in use?")],
        exitCodes: [.success, .usage, .internalFailure, .inputOutput, .leftForLater, .configuration],
        make: { .listKeys(isJSON: $0.has("json")) }
    )

    private static let rotate = CommandSpecification(
        words: ["keys", "rotate"],
        summary: "add a new key and seal all tokens with it",
        discussion: [
            """
            Adds a new key to the key ring, waits until every live worker reports that it holds it, then seals the \
            stored tokens again while the workers run. An interrupted rotation continues when the command is run \
            again. The old key stays in the ring until it is retired. With --json, progress is written to standard \
            error.
            """
        ],
        options: [.jsonObject],
        settings: [.config, .database, .keyFile, .logLevel],
        examples: [
            Example(
                line: "sudo -u refresh-worker refresh-worker keys rotate",
                purpose: "once a year, or after a person who knew the key has left"
            )
        ],
        exitCodes: [.success, .usage, .internalFailure, .inputOutput, .leftForLater, .configuration],
        make: { .rotateKeys(isJSON: $0.has("json")) }
    )

    private static let retire = CommandSpecification(
        words: ["keys", "retire"],
        summary: "retire an old key, and remove it a day later",
        discussion: [
            """
            The key opens tokens for one more day but does not seal, because results that it sealed may still wait to \
            be stored. After that day the same command, or keys rotate, removes it from the file. The command exits \
            with 75 while a stored token is sealed with the key or a live worker seals with it, and with 65 if the \
            ring does not contain it. Backups of the database from before may still need it.
            """,
            """
            Workers do not run without a key that seals stored tokens. If such a key is lost permanently, --lost lets \
            them run: its tokens stay unreadable, and their users must sign in again.
            """,
        ],
        operands: [.keyID("the key's id, as keys list prints it")],
        options: [
            OptionSpecification(name: "lost", kind: .toggle, summary: "give up a key that no copy of the ring holds"),
            .jsonObject,
        ],
        settings: [.config, .database, .keyFile, .logLevel],
        examples: [Example(line: "refresh-worker keys retire 7f3a91c2", purpose: "after keys rotate has finished")],
        exitCodes: [
            .success, .usage, .badData, .internalFailure, .inputOutput, .leftForLater, .configuration,
        ],
        make: { .retireKey(id: $0.operand, isLost: $0.has("lost"), isJSON: $0.has("json")) }
    )
}

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
