import Testing

@testable import Routes

@Suite("The permissions of a service")
struct ServiceTests {
    @Test("two encodings of an accented letter name two users, as in the store")
    func usersComparedByBytes() {
        let service = Service(
            name: "mailer",
            credentialHash: [],
            scopes: .everything,
            users: .only(["caf\u{e9}"])
        )
        #expect(service.refusal(forUser: "caf\u{e9}", scopes: []) == nil)
        #expect(service.refusal(forUser: "cafe\u{301}", scopes: []) != nil)
    }
}
