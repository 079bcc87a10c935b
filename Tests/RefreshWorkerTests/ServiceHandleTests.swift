import Base
import Routes
import Testing

@testable import RefreshWorker

@Suite("services handle")
struct ServiceHandleTests {
    private let credential: ServiceCredential

    init() throws {
        credential = try #require(try ServiceCredential(forService: "mailer"))
    }

    private func handle(of user: String, for service: String, users: String = #"["*"]"#) async throws -> String {
        try await OperatorFixture.with { fixture in
            let entry = credential.entry.replacing(#""users":["*"]"#, with: "\"users\":\(users)")
            try fixture.write("{\"services\": [\(entry)]}", to: "services")
            let context = try fixture.context([(.servicesFile, fixture.path("services"))])
            return try context.readServices().handle(of: user, connection: nil, for: service)
        }
    }

    @Test("gives each user one handle, which does not show the id")
    func made() async throws {
        let made = try await handle(of: "alice", for: "mailer")
        #expect(made.hasPrefix("rwh_") && !made.contains("alice"))
        #expect(try await handle(of: "alice", for: "mailer", users: #"["alice"]"#) == made)
        #expect(try await handle(of: "bob", for: "mailer") != made)
    }

    @Test(
        "is refused for an unknown service, and for a user whose tokens the service may not have",
        arguments: [("other", #"["*"]"#, "other"), ("mailer", #"["bob"]"#, "users")]
    )
    func refused(service: String, users: String, word: String) async throws {
        let error = await #expect(throws: CommandError.self) {
            try await handle(of: "alice", for: service, users: users)
        }
        #expect(error?.exitCode == .badData)
        #expect(error.map { "\($0)" }?.contains(word) == true)
    }
}
