import Testing

@testable import AccountAPI

@Suite("The permissions of a service")
struct ServiceTests {
    @Test("two encodings of an accented letter name two users, as in the store")
    func usersByBytes() {
        let service = Service(name: "mailer", scopes: .everything, users: .only(["caf\u{e9}"]))
        #expect(service.objection(toUser: "caf\u{e9}", scopes: []) == nil)
        #expect(service.objection(toUser: "cafe\u{301}", scopes: []) != nil)
    }
}
