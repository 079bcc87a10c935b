import Crypto
import GoogleOAuth
import Storage
import TestSupport
import Testing

@testable import Base
@testable import Routes
@testable import Scheduler

@Suite("Repeated and unfinished exchanges of codes", .timeLimit(.minutes(10)))
struct CodeExchangesTests {
    private func fixture() throws -> AccountFixture {
        let fixture = try AccountFixture()
        fixture.codes.configure()
        fixture.google.setAccount("ya29.jane")
        return fixture
    }

    /// Waits for the exchange that is held, lets it go on, and returns while its tokens wait for the second try to
    /// store them.
    private func failFirstCommit(of fixture: AccountFixture) async throws {
        try await poll(until: { fixture.codes.exchanged.count == 1 })
        fixture.store.failTransactions(1, with: .ioFailure)
        fixture.codes.release()
        try await poll(until: { fixture.store.failed == 1 })
        await fixture.time.sleepers(atLeast: 1, for: .milliseconds(500))
        fixture.time.advance(by: .milliseconds(100))
    }

    @Test("the same code gets the first response for a minute")
    func repeated() async throws {
        let fixture = try fixture()
        fixture.codes.grant("4/0A")
        let first = try await fixture.connect("ya29.jane", code: "4/0A")
        fixture.time.advance(by: .seconds(59))
        let second = try await fixture.connect("ya29.jane", code: "4/0A")
        #expect(second.text == first.text)
        #expect(fixture.codes.exchanged == ["4/0A"])
        fixture.time.advance(by: .seconds(2))
        fixture.codes.set("4/0A", .refused("invalid_grant"))
        #expect(try await fixture.connect("ya29.jane", code: "4/0A").statusAndCode == "400 INVALID_CODE")
        #expect(fixture.codes.exchanged == ["4/0A", "4/0A"])
    }

    @Test("two requests at once make one exchange")
    func twins() async throws {
        let fixture = try fixture()
        fixture.codes.grant("4/0A")
        fixture.codes.hold()
        async let first = fixture.connect("ya29.jane", code: "4/0A")
        async let second = fixture.connect("ya29.jane", code: "4/0A")
        try await poll(until: { fixture.codes.exchanged.count == 1 })
        fixture.codes.release()
        #expect(try await (first.status, second.status) == (201, 201))
        #expect(try await first.text == second.text)
        #expect(fixture.codes.exchanged == ["4/0A"])
    }

    @Test("a code that might still be good is tried again, a refused one is not")
    func retried() async throws {
        let fixture = try fixture()
        fixture.codes.set("4/0A", .unavailable("http_503"))
        #expect(try await fixture.connect("ya29.jane", code: "4/0A").statusAndCode == "502 DEPENDENCY_FAILURE")
        fixture.codes.grant("4/0A")
        #expect(try await fixture.connect("ya29.jane", code: "4/0A").status == 201)
        #expect(try await fixture.connect("ya29.jane", code: "4/0X").statusAndCode == "400 INVALID_CODE")
        #expect(try await fixture.connect("ya29.jane", code: "4/0X").statusAndCode == "400 INVALID_CODE")
        #expect(fixture.codes.exchanged == ["4/0A", "4/0A", "4/0X"])
    }

    /// The second pair of ids is equal as `String`, and differs in its bytes.
    @Test("another user's code is refused", arguments: [("42", "7"), ("\u{e9}", "e\u{301}")])
    func otherUser(first: String, second: String) async throws {
        let fixture = try fixture()
        fixture.codes.grant("4/0A")
        #expect(try await fixture.connect("ya29.jane", code: "4/0A", user: first).status == 201)
        #expect(try await fixture.connect("ya29.jane", code: "4/0A", user: second).statusAndCode == "400 INVALID_CODE")
        #expect(try await fixture.grant(ofUser: second) == nil)
    }

    @Test("the same code with the token of another account gets no answer about the first one")
    func repeatedForOtherAccount() async throws {
        let fixture = try fixture()
        fixture.codes.grant("4/0A")
        _ = try await fixture.connect("ya29.jane", code: "4/0A")
        fixture.google.setAccount("ya29.joe", .init(id: "g-2", email: "joe@gmail.com"))
        #expect(try await fixture.connect("ya29.joe", code: "4/0A").statusAndCode == "400 INVALID_CREDENTIALS")
        #expect(fixture.codes.exchanged == ["4/0A"])
    }

    @Test("the same code for another connection is spent, and gets no answer about the first one")
    func repeatedForOtherConnection() async throws {
        let fixture = try fixture()
        fixture.codes.grant("4/0A")
        func connect(_ connection: String) async throws -> ParsedResponse {
            try await fixture.send(
                "POST",
                "/v1/connections/google",
                token: fixture.token(ofUser: "42"),
                json: #"{"access_token":"ya29.jane","server_auth_code":"4/0A"\#(connection)}"#
            )
        }
        let first = try await connect(#","connection":"new""#)
        #expect(first.status == 201)
        for other in ["", #","on_switch":"refuse""#, #","connection":"default""#] {
            #expect(try await connect(other).statusAndCode == "400 INVALID_CODE")
        }
        #expect(try await connect(#","connection":"new""#).text == first.text)
        #expect(fixture.codes.exchanged == ["4/0A"])
    }

    @Test("a limited number of exchanges is in progress, and the code of one more is not spent")
    func maximumInProgress() async throws {
        let fixture = try fixture()
        fixture.codes.hold()
        try await withThrowingTaskGroup { group in
            for number in 1...CodeExchangeState.maximumInProgress {
                fixture.codes.grant("4/\(number)", refresh: "1//\(number)")
                group.addTask { try await fixture.connect("ya29.jane", code: "4/\(number)", user: "\(number)").status }
            }
            try await poll(until: { fixture.codes.exchanged.count == CodeExchangeState.maximumInProgress })
            fixture.codes.grant("4/0A")
            #expect(try await fixture.connect("ya29.jane", code: "4/0A").statusAndCode == "503 DEPENDENCY_FAILURE")
            fixture.codes.release()
            for try await status in group { #expect(status == 201) }
        }
        #expect(!fixture.codes.exchanged.contains("4/0A"))
        #expect(try await fixture.connect("ya29.jane", code: "4/0A").status == 201)
    }

    @Test("tokens that cannot be stored wait in memory until they can")
    func storeFails() async throws {
        let fixture = try fixture()
        fixture.codes.grant("4/0A")
        fixture.codes.hold()
        async let response = fixture.connect("ya29.jane", code: "4/0A")
        try await poll(until: { fixture.codes.exchanged.count == 1 })
        fixture.store.failTransactions(1, with: .ioFailure)
        fixture.codes.release()
        try await poll(until: { fixture.store.failed == 1 })
        await fixture.time.sleepers(atLeast: 1, for: .milliseconds(500))
        fixture.time.advance(by: .seconds(1))
        #expect(try await response.status == 201)
        #expect(try await fixture.refreshToken() == "1//server")
    }

    @Test("a request does not wait for ever, and its tokens are stored later")
    func slowStore() async throws {
        let fixture = try fixture()
        fixture.codes.grant("4/0A")
        fixture.codes.hold()
        async let response = fixture.connect("ya29.jane", code: "4/0A")
        try await poll(until: { fixture.codes.exchanged.count == 1 })
        await fixture.time.sleepers(atLeast: 1, for: CodeExchanges.maximumWait)
        fixture.time.advance(by: CodeExchanges.maximumWait)
        let late = try await response
        #expect(late.statusAndCode == "503 DEPENDENCY_FAILURE")
        #expect(late.header("Retry-After") == "5")
        fixture.codes.release()
        #expect(try await fixture.connect("ya29.jane", code: "4/0A").status == 201)
        #expect(fixture.codes.exchanged == ["4/0A"])
    }

    @Test("a user who is deleted during the exchange gets no grant, and the token is revoked")
    func deletedUser() async throws {
        let fixture = try fixture()
        fixture.codes.grant("4/0A")
        _ = try await fixture.send("GET", "/v1/user/me", token: fixture.token(ofUser: "42"))
        fixture.codes.hold()
        async let response = fixture.connect("ya29.jane", code: "4/0A")
        try await poll(until: { fixture.codes.exchanged.count == 1 })
        _ = try await fixture.send("DELETE", "/v1/user/me", token: fixture.token(ofUser: "42"))
        fixture.codes.release()
        #expect(try await response.statusAndCode == "404 USER_NOT_FOUND")
        await fixture.exchanges.waitUntilNothingIsInProgress()
        #expect(fixture.codes.revoked == ["1//server"])
    }

    @Test("the token of a deleted user is not revoked if another user's grant has the e-mail address of its account")
    func sharedAddress() async throws {
        let fixture = try fixture()
        try await fixture.importGrant(ofUser: "7", owner: Grant.Owner(email: "Jane@gmail.com"))
        fixture.codes.grant("4/0A")
        _ = try await fixture.send("GET", "/v1/user/me", token: fixture.token(ofUser: "42"))
        fixture.codes.hold()
        async let response = fixture.connect("ya29.jane", code: "4/0A")
        try await poll(until: { fixture.codes.exchanged.count == 1 })
        _ = try await fixture.send("DELETE", "/v1/user/me", token: fixture.token(ofUser: "42"))
        fixture.codes.release()
        #expect(try await response.statusAndCode == "404 USER_NOT_FOUND")
        await fixture.exchanges.waitUntilNothingIsInProgress()
        #expect(fixture.codes.revoked == [])
    }

    @Test("a user who disconnects while the store fails is not connected again")
    func disconnectedMeanwhile() async throws {
        let fixture = try fixture()
        _ = try await fixture.connect("ya29.jane", refreshToken: "1//app")
        fixture.time.advance(by: .seconds(1))
        fixture.codes.grant("4/0A")
        fixture.codes.hold()
        async let response = fixture.connect("ya29.jane", code: "4/0A")
        try await failFirstCommit(of: fixture)
        let token = fixture.token(ofUser: "42")
        #expect(try await fixture.send("DELETE", "/v1/auth/gmail-tokens", token: token).status == 200)
        fixture.time.advance(by: .seconds(1))
        #expect(try await response.statusAndCode == "400 INVALID_CODE")
        #expect(try await fixture.grant()?.state == .disconnected)
    }

    @Test(
        "of two devices that connect one account at once, both are told that it is connected, and the newest token stays",
        arguments: ["1//fast", nil]
    )
    func twoDevices(fastToken: String?) async throws {
        let fixture = try fixture()
        _ = try await fixture.connect("ya29.jane", refreshToken: "1//dead")
        fixture.time.advance(by: .seconds(1))
        fixture.codes.grant("4/0A")
        fixture.codes.hold()
        async let slow = fixture.connect("ya29.jane", code: "4/0A")
        try await failFirstCommit(of: fixture)
        let fast = try await fixture.connect("ya29.jane", refreshToken: fastToken)
        #expect(fast.status == 201)
        fixture.time.advance(by: .seconds(1))
        #expect(try await slow.status == 201)
        #expect(try await fixture.refreshToken() == fastToken ?? "1//server")
        #expect(fixture.codes.revoked.isEmpty)
    }

    @Test("a failing store does not end the revocation of a token that no grant gets")
    func revocationWhileStoreFails() async throws {
        let fixture = try fixture()
        fixture.codes.grant("4/0A", ofAccount: .success("g-2"))
        fixture.codes.hold()
        async let response = fixture.connect("ya29.jane", code: "4/0A")
        try await poll(until: { fixture.codes.exchanged.count == 1 })
        fixture.store.failTransactions(1, with: .ioFailure)
        fixture.codes.release()
        #expect(try await response.statusAndCode == "400 INVALID_CREDENTIALS")
        await fixture.time.sleepers(atLeast: 1, for: .milliseconds(500))
        #expect(fixture.codes.revoked == [])
        fixture.time.advance(by: .milliseconds(500))
        await fixture.exchanges.waitUntilNothingIsInProgress()
        #expect(fixture.codes.revoked == ["1//server"])
    }

    @Test("a revocation does not end tokens of the same account that are not stored yet")
    func revocationBesideHeldTokens() async throws {
        let fixture = try fixture()
        fixture.codes.grant("4/0A", refresh: "1//mistaken", ofAccount: .success("g-2"))
        fixture.codes.failRevocations(1)
        #expect(try await fixture.connect("ya29.jane", code: "4/0A").statusAndCode == "400 INVALID_CREDENTIALS")
        await fixture.time.sleepers(atLeast: 1, for: .milliseconds(500))
        fixture.google.setAccount("ya29.joe", .init(id: "g-2", email: "joe@gmail.com"))
        fixture.codes.grant("4/0B", refresh: "1//joe", ofAccount: .success("g-2"))
        fixture.codes.hold()
        async let response = fixture.connect("ya29.joe", code: "4/0B", user: "7")
        try await poll(until: { fixture.codes.exchanged.count == 2 })
        fixture.store.failTransactions(1, with: .ioFailure)
        fixture.codes.release()
        try await poll(until: { fixture.store.failed == 1 })
        await fixture.time.sleepers(atLeast: 2, for: .milliseconds(500))
        fixture.time.advance(by: .seconds(1))
        #expect(try await response.status == 201)
        await fixture.exchanges.waitUntilNothingIsInProgress()
        #expect(fixture.codes.revoked == ["1//mistaken"])
        #expect(try await fixture.refreshToken(ofUser: "7") == "1//joe")
    }

    // MARK: The stop of the worker

    @Test("a stop waits for an exchange in progress, and begins no other one")
    func stopWaits() async throws {
        let fixture = try fixture()
        fixture.codes.grant("4/0A")
        fixture.codes.hold()
        async let response = fixture.connect("ya29.jane", code: "4/0A")
        try await poll(until: { fixture.codes.exchanged.count == 1 })
        async let unstored = fixture.exchanges.stop(within: .seconds(20))
        try await poll(until: { fixture.exchanges.isStopping })
        #expect(try await fixture.connect("ya29.jane", code: "4/0B").statusAndCode == "503 DEPENDENCY_FAILURE")
        fixture.codes.release()
        #expect(try await response.status == 201)
        #expect(await unstored == .none)
        #expect(fixture.codes.exchanged == ["4/0A"])
    }

    @Test("a stop writes tokens that the store does not take to the spill file", arguments: [false, true])
    func stopSpills(spillFails: Bool) async throws {
        let fixture = try fixture()
        if spillFails { fixture.codes.failSpill(FileError("the test says so")) }
        fixture.codes.grant("4/0A")
        fixture.codes.hold()
        async let response = fixture.connect("ya29.jane", code: "4/0A")
        try await poll(until: { fixture.codes.exchanged.count == 1 })
        fixture.store.failTransactions(1000, with: .ioFailure)
        fixture.codes.release()
        try await poll(until: { fixture.store.failed >= 1 })
        async let unstored = fixture.exchanges.stop(within: .zero)
        #expect(try await response.statusAndCode == "503 DEPENDENCY_FAILURE")
        let result = await unstored
        #expect(result == (spillFails ? UnstoredResults(lost: 1) : UnstoredResults(spilled: 1)))
        #expect(fixture.codes.spilled.map { $0.refreshToken?.reveal() } == (spillFails ? [] : ["1//server"]))
    }

    @Test("a stop does not wait for a blocked store: the app gets a response, and the tokens are in the spill file")
    func stopWhileStoreIsBlocked() async throws {
        let fixture = try fixture()
        fixture.codes.grant("4/0A")
        fixture.codes.hold()
        async let response = fixture.connect("ya29.jane", code: "4/0A")
        try await poll(until: { fixture.codes.exchanged.count == 1 })
        let (isBlocked, mayCommit) = (AwaitedState(false), AwaitedState(false))
        fixture.store.beforeTransaction {
            isBlocked.change { $0 = true }
            await mayCommit.wait { $0 }
        }
        fixture.codes.release()
        await isBlocked.wait { $0 }
        async let unstored = fixture.exchanges.stop(within: .zero)
        await fixture.time.sleepers(atLeast: 1, for: CodeExchanges.timeToEnd)
        fixture.time.advance(by: CodeExchanges.timeToEnd)
        #expect(try await response.statusAndCode == "503 DEPENDENCY_FAILURE")
        #expect(await unstored == UnstoredResults(spilled: 1))
        mayCommit.change { $0 = true }
        await fixture.exchanges.waitUntilNothingIsInProgress()
    }
}
