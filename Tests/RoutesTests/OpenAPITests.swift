import Base
import Scheduler
import Storage
import Testing

@testable import HTTPServer
@testable import Routes

@Suite("docs/openapi.yaml")
struct OpenAPITests {
    private let description: OpenAPIDescription

    init() throws {
        description = try OpenAPIDescription()
    }

    @Test("describes exactly the routes of the public listener")
    func publicRoutes() throws {
        try expect(AccountFixture().routes.routes, tagged: "public")
    }

    @Test("describes exactly the routes of the internal listener")
    func internalRoutes() async throws {
        try expect(await VendingFixture().routes().routes, tagged: "internal")
    }

    @Test("describes only routes of a listener")
    func unlistedRoutes() {
        let unlistedRoutes = description.operations.filter { $0.tags.isDisjoint(with: ["public", "internal"]) }
        #expect(unlistedRoutes.map(\.name) == [])
    }

    private func expect(_ routes: [Route], tagged tag: String) throws {
        let served = Set(routes.map { "\($0.method) \($0.pattern)" })
        let described = Set(description.operations(tagged: tag).map(\.name))
        #expect(served.subtracting(described) == [], "served and not described")
        #expect(described.subtracting(served) == [], "described and not served")
    }

    // MARK: Statuses

    private static let authentication: [AppError] = [
        .missingToken, .invalidToken, .foreignToken, .expiredToken, .deletedUser, .inactiveUser,
        .keysUnavailable(retryAfter: .seconds(1)),
    ]
    private static let body: [AppError] = [
        .unsupportedMediaType, .unreadableBody, .missingField("name"), .invalidField("name", mustBe: "other"),
    ]
    private static let neededBody: [AppError] = body + [.undeclaredBody]
    private static let limited: [AppError] = [.tooManyRequests(retryAfter: .seconds(1))]
    private static let refresh: [AppError] = neededBody + limited + [.invalidRefreshToken, .notMovedYet]
    private static let logout: [AppError] = authentication + body + limited
    private static let google: [AppError] = [.refusedByGoogle, .refusedIDToken, .googleUnreachable] + limited
    private static let codes: [AppError] = [.refusedCode, .noServerClient, .codeOfOtherAccount, .stillConnecting]
    private static let connectionErrors: [AppError] = [
        .accountMismatch(expected: "jane@work.example", found: "jane@gmail.com"), .accountIsConnected(.default),
        .accountSwitch(from: "jane@gmail.com", to: "jane@work.example"), .unknownConnection,
        .tooManyConnections(limit: 20),
    ]
    private static let always: [AppError] = [.wrongMethod, .internalError]

    @Test("describes each status of PayPulse's routes")
    func payPulse() {
        let operations = description.operations(tagged: "paypulse")
        #expect(operations.count == 6)
        for operation in operations {
            let hasBody = operation.name.hasPrefix("POST ")
            // A repeated deletion is not an error.
            let deletesUser = operation.name.hasPrefix("DELETE ") && operation.name.hasSuffix("/me")
            let authentication = Self.authentication.filter { !(deletesUser && $0 == .deletedUser) }
            let errors =
                authentication + (hasBody ? Self.neededBody + Self.google + Self.codes : Self.limited) + Self.always
            expect(errors.map(\.payPulseResponse.status), describedFor: operation)
        }
    }

    @Test("describes each status of the routes of connections")
    func connectionRoutes() throws {
        let connecting = Self.neededBody + Self.google + Self.codes + Self.connectionErrors
        let naming: [AppError] = Self.limited + [.unknownConnection]
        let expected: [String: [AppError]] = [
            "POST /v1/connections/google": connecting, "GET /v1/connections": Self.limited,
            "GET /v1/connections/{id}": naming, "DELETE /v1/connections/{id}": naming,
        ]
        let operations = description.operations(tagged: "connections")
        #expect(Set(operations.map(\.name)) == Set(expected.keys))
        for operation in operations {
            let errors = Self.authentication + (expected[operation.name] ?? []) + Self.always
            expect(errors.map(\.payPulseResponse.status), describedFor: operation)
        }
    }

    @Test("names each code of PayPulse's errors")
    func payPulseCodes() {
        let named = Set(description.lines.map { $0.drop { $0 == " " } })
        let errors =
            Self.authentication + Self.neededBody + Self.google + Self.codes + Self.connectionErrors + Self.always
            + [.unknownPath]
        let codes = Set(errors.map { PayPulseErrorForm($0).code })
        #expect(codes == Set(PayPulseErrorForm.Code.allCases))
        for code in codes { #expect(named.contains("- \(code.rawValue)")) }
    }

    @Test(
        "describes each status of the session routes",
        arguments: [
            ("POST /api/auth/mobile/google", Self.neededBody + Self.google),
            ("POST /api/auth/refresh", Self.refresh),
            ("GET /api/auth/me", Self.authentication + Self.limited),
            ("POST /api/auth/logout", Self.logout),
            ("GET /api/auth/status", []),
        ]
    )
    func sessions(name: String, errors: [AppError]) throws {
        let operation = try #require(description.operations.first { $0.name == name })
        expect((errors + Self.always).map(\.sessionResponse.status), describedFor: operation)
    }

    @Test("describes each status of token vending")
    func vending() {
        let refusals: [ServiceError] = [
            .invalidRequest("why"), .unauthorized, .forbiddenUser, .forbiddenConnection, .missingScopes(["openid"]),
            .noGrant, .mustAct(state: .disconnected, reason: .none, since: Timestamp(milliseconds: 0)),
            .unavailable(reason: "timeout", wait: .seconds(1)), .storeUnavailable, .auditUnavailable, .unreadableToken,
        ]
        let operations = description.operations(tagged: "vending")
        #expect(operations.count == 2)
        for operation in operations { expect([200, 405] + refusals.map(\.response.status), describedFor: operation) }
    }

    @Test("describes each status of administration")
    func administration() {
        let refusals: [ServiceError] = [
            .invalidRequest("why"), .unauthorized, .notManager, .forbiddenConnection, .manageAuditUnavailable,
        ]
        let operations = description.operations(tagged: "administration")
        #expect(operations.count == 6)
        for operation in operations {
            let missing: [ServiceError] = operation.name == "GET /v1/grants" ? [] : [.noGrant]
            let kept: [ServiceError] =
                ["PUT ", "POST"].contains(operation.name.prefix(4))
                ? [.keptEnded, .userWasDeleted, .accountConnected(.default)] : []
            let added = operation.name.hasPrefix("PUT ") ? [201] : []
            expect(
                [200, 405] + added + (refusals + missing + kept).map(\.response.status),
                describedFor: operation
            )
        }
    }

    @Test("describes each status of the token endpoint")
    func tokenEndpoint() {
        let refusals: [ServiceError] = [
            .invalidRequest("why"), .unsupportedGrantType, .invalidTarget, .unauthorized, .forbiddenUser,
            .forbiddenConnection, .missingScopes(["openid"]), .noGrant, .unreadableToken, .auditUnavailable,
        ]
        let operations = description.operations(tagged: "oauth")
        #expect(operations.map(\.name) == ["POST \(TokenVendingHandler.tokenEndpointPath)"])
        let statuses = (refusals + [.wrongMethod]).map(\.oauthResponse.status)
        for operation in operations { expect([200] + statuses, describedFor: operation) }
    }

    private func expect(_ statuses: [Int], describedFor operation: OpenAPIDescription.Operation) {
        #expect(Set(statuses).subtracting(operation.statuses) == [], "\(operation.name) lacks these")
    }
}
