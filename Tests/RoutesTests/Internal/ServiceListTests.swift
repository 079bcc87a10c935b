import Base
import Crypto
import Testing

@testable import Routes

@Suite("The services file")
struct ServiceListTests {
    private static let hash = String(repeating: "0a", count: 32)
    private static let other = String(repeating: "0b", count: 32)

    private static func entry(
        name: String = #""mailer""#,
        hash: String = "\"\(hash)\"",
        scopes: String = #"["*"]"#,
        users: String = #"["*"]"#,
        operator isOperator: String? = nil
    ) -> String {
        let last = isOperator.map { #","operator":\#($0)"# } ?? ""
        return #"{"name":\#(name),"credential_sha256":\#(hash),"scopes":\#(scopes),"users":\#(users)\#(last)}"#
    }

    private static func file(_ entries: String...) -> String {
        #"{"services":[\#(entries.joined(separator: ","))]}"#
    }

    @Test("lists services and their permissions")
    func good() throws {
        let text = Self.file(
            Self.entry(),
            Self.entry(name: #""b.c-d_9""#, hash: "\"\(Self.other)\"", scopes: #"["email"]"#, users: #"["1","2"]"#)
        )
        #expect(try ServiceList(parsing: text.utf8).count == 2)
    }

    @Test(
        "is refused completely, with the place of the mistake, for anything else",
        arguments: [
            ("", "not JSON"), ("{}", "services"), (#"{"services":{}}"#, "services"),
            (#"{"services":[]}"#, "services"),
            (#"{"services":[1]}"#, "services[0]"), (#"{"services":[],"sevices":[]}"#, "sevices"),
            (file(#"{"name":"a"}"#), "services[0].credential_sha256"),
            (file(entry().replacing("}", with: #","scope":["*"]}"#)), "services[0].scope"),
            (file(entry(name: #""""#)), "services[0].name"), (file(entry(name: "7")), "services[0].name"),
            (file(entry(name: #""a b""#)), "services[0].name"),
            (file(entry(name: "\"\(String(repeating: "n", count: 65))\"")), "services[0].name"),
            (file(entry(hash: #""0a""#)), "services[0].credential_sha256"),
            (file(entry(hash: "\"\(String(repeating: "0A", count: 32))\"")), "services[0].credential_sha256"),
            (file(entry(hash: "\"\(String(repeating: "0g", count: 32))\"")), "services[0].credential_sha256"),
            (file(entry(hash: "null")), "services[0].credential_sha256"),
            (file(entry(scopes: "[]")), "services[0].scopes"), (file(entry(scopes: #""*""#)), "services[0].scopes"),
            (file(entry(scopes: #"["openid","*"]"#)), "services[0].scopes[1]"),
            (file(entry(scopes: #"["openid email"]"#)), "services[0].scopes[0]"),
            (file(entry(users: #""present""#, operator: "true")), "services[0].users"),
            (file(entry(users: #""absent""#)), "services[0].users"), (file(entry(users: #""*""#)), "services[0].users"),
            (file(entry(scopes: #""present""#)), "services[0].scopes"),
            (file(entry(scopes: "[7]")), "services[0].scopes[0]"), (file(entry(users: "[]")), "services[0].users"),
            (file(entry(users: #"["1",""]"#)), "services[0].users[1]"),
            (file(entry(operator: #""true""#)), "services[0].operator"),
            (file(entry(operator: "1")), "services[0].operator"),
            (file(entry(operator: "null")), "services[0].operator"),
            (file(entry().replacing(#""scopes":["*"],"#, with: "")), "services[0].scopes"),
            (file(entry(operator: "false").replacing(#""scopes":["*"],"#, with: "")), "services[0].scopes"),
            (file(entry(scopes: "[]", operator: "true")), "services[0].scopes"),
            (file(entry(operator: "true").replacing(#""users":["*"],"#, with: "")), "services[0].users"),
            (file(entry(), entry(hash: "\"\(other)\"")), "services[1].name"),
            (file(entry(), entry(name: #""other""#)), "services[1].credential_sha256"),
        ]
    )
    func refused(text: String, place: String) {
        let error = #expect(throws: FormatError.self) { try ServiceList(parsing: text.utf8) }
        #expect(error?.description.hasPrefix("\(place): ") == true)
    }

    @Test(
        "says what is wrong",
        arguments: [
            ("[]", "must be an object"), ("{}", "services: is missing"),
            (#"{"services":{}}"#, "services: must be an array of services"),
            (#"{"services":[]}"#, "services: must have 1 to 1000 services"),
            (#"{"services":[],"sevices":[]}"#, "sevices: is not known; there are: services"),
            (
                file(entry().replacing("}", with: #","scope":["*"]}"#)),
                """
                services[0].scope: is not known; there are: name, credential_sha256, users, scopes, connections, \
                operator, manage
                """
            ),
            (
                file(entry(name: "7")),
                "services[0].name: must be 1 to 64 letters, digits, dots, dashes or underscores"
            ),
            (
                file(entry(hash: "null")),
                "services[0].credential_sha256: must be the SHA-256 of the credential as 64 lower-case hexadecimal digits"
            ),
            (file(entry(operator: "1")), "services[0].operator: must be true or false"),
            (
                file(entry().replacing(#""users""#, with: #""manage":"yes","users""#)),
                "services[0].manage: must be true or false"
            ),
            (
                file(entry(scopes: "[]")),
                #"services[0].scopes: must be ["*"] for all, or an array of 1 to 10000 texts"#
            ),
            (
                file(entry(users: #""present""#).replacing(#""users""#, with: #""manage":true,"users""#)),
                #"services[0].users: must be ["*"] for all, or an array of 1 to 10000 texts"#
            ),
            (
                file(entry(users: #""absent""#)),
                #"services[0].users: must be ["*"] for all, an array of 1 to 10000 texts, or "present""#
            ),
            (file(entry(scopes: #"["openid","*"]"#)), "services[0].scopes[1]: must be the only entry to mean all"),
            (file(entry(scopes: "[7]")), "services[0].scopes[0]: is not a name"),
            (
                file(entry(), entry(hash: "\"\(other)\"")),
                "services[1].name: is already the name of services[0]"
            ),
            (
                file(entry(), entry(name: #""other""#)),
                "services[1].credential_sha256: is the credential of services[0] too"
            ),
        ]
    )
    func text(text: String, message: String) {
        #expect(throws: FormatError(message)) { try ServiceList(parsing: text.utf8) }
    }

    @Test(
        "names the operators, who get no tokens unless they have scopes",
        arguments: [
            (nil, false, false, true), ("false", false, false, true), ("true", false, true, true),
            ("true", true, true, false),
        ] as [(String?, Bool, Bool, Bool)]
    )
    func operators(text: String?, lacksScopes: Bool, isOperator: Bool, mayHaveTokens: Bool) throws {
        let entry = Self.entry(operator: text)
        let written = lacksScopes ? entry.replacing(#""scopes":["*"],"#, with: "") : entry
        let service = try #require(try ServiceList(parsing: Self.file(written).utf8).service(named: "mailer"))
        #expect(service.isOperator == isOperator)
        #expect(service.mayHaveTokens(ofUser: "alice") == mayHaveTokens)
    }

    @Test(
        "names the services that manage grants, which get no tokens unless they have scopes",
        arguments: [false, true]
    )
    func managers(isManager: Bool) throws {
        let entry = Self.entry().replacing(#""users""#, with: #""manage":\#(isManager),"users""#)
        let service = try #require(try ServiceList(parsing: Self.file(entry).utf8).service(named: "mailer"))
        #expect(service.isManager == isManager && service.mayHaveTokens(ofUser: "alice"))
        let bare = entry.replacing(#""scopes":["*"],"#, with: "")
        let only = try? ServiceList(parsing: Self.file(bare).utf8).service(named: "mailer")
        #expect(only.map { $0.mayHaveTokens(ofUser: "alice") } == (isManager ? false : nil))
    }

    @Test("accepts the entry of an operator's new credential")
    func operatorCredential() throws {
        let made = try #require(try ServiceCredential(forService: "jane", isOperator: true))
        let services = try ServiceList(parsing: Self.file(made.entry).utf8)
        let service = try #require(services.service(named: "jane"))
        #expect(service.isOperator && !service.mayHaveTokens(ofUser: "alice"))
    }

    @Test("may name at most a thousand services", arguments: [(1_000, true), (1_001, false)])
    func maximumServices(count: Int, isAccepted: Bool) {
        let entries = (0..<count).map { number in
            let digits = String(number, radix: 16)
            let hash = String(repeating: "0", count: 64 - digits.count) + digits
            return Self.entry(name: "\"s\(number)\"", hash: "\"\(hash)\"")
        }
        let text = #"{"services":[\#(entries.joined(separator: ","))]}"#
        let result = Result { try ServiceList(parsing: text.utf8).count }
        #expect((try? result.get()) == (isAccepted ? count : nil))
    }

    @Test("accepts the entry of a new credential, which then identifies its service")
    func credential() throws {
        let made = try #require(try ServiceCredential(forService: "mailer"))
        let next = try #require(try ServiceCredential(forService: "mailer"))
        #expect(made.secret != next.secret)
        #expect(made.secret.count == "rwc_".count + 43)
        #expect(!made.entry.contains(made.secret.reveal()))
        let directory = ServiceDirectory(try ServiceList(parsing: Self.file(made.entry).utf8))
        #expect(directory.service(presenting: made.secret.reveal())?.name == "mailer")
        #expect(directory.service(presenting: next.secret.reveal()) == nil)
        directory.replace(try ServiceList(parsing: Self.file(next.entry).utf8))
        #expect(directory.service(presenting: made.secret.reveal()) == nil)
        #expect(directory.service(presenting: next.secret.reveal())?.name == "mailer")
        #expect(try ServiceCredential(forService: "a b") == nil)
    }

    @Test("identifies a service by its name only together with its credential")
    func login() throws {
        let mailer = try #require(try ServiceCredential(forService: "mailer"))
        let other = try #require(try ServiceCredential(forService: "other"))
        let directory = ServiceDirectory(try ServiceList(parsing: Self.file(mailer.entry, other.entry).utf8))
        #expect(directory.service(named: "mailer", presenting: mailer.secret.reveal())?.name == "mailer")
        for (name, credential) in [
            ("mailer", other.secret.reveal()), ("other", mailer.secret.reveal()), ("none", mailer.secret.reveal()),
            ("mailer", ""), ("", ""), ("Mailer", mailer.secret.reveal()),
        ] {
            #expect(directory.service(named: name, presenting: credential) == nil)
        }
    }
}
