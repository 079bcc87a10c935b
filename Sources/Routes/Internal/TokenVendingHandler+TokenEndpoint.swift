import Base
import Crypto
import HTTPServer
import Records
import Scheduler
import Storage

/// The token endpoint for OAuth libraries: the tokens of ``TokenVendingHandler``, requested in a standard form.
///
/// No library names the token that it replaces, so the endpoint cannot know that Google has rejected one early. A
/// service that needs another asks `POST /v1/grants/{user_id}/token/refresh`.
extension TokenVendingHandler {
    static let tokenEndpointPath = "/oauth2/token"

    /// Returns a token that lives long enough for a library, or an error that it understands.
    func tokenEndpointResponse(to request: ServerRequest) async -> ServerResponse {
        let start = time.sinceBoot
        let form: TokenEndpointForm
        let login: TokenEndpointLogin?
        do throws(ServiceError) {
            form = try TokenEndpointForm(request)
            login = try form.login(request)
        } catch {
            return refused(error, since: start).oauthResponse
        }
        guard let login, let service = services.service(named: login.name, presenting: login.credential) else {
            return refusedStranger(request, since: start).oauthResponse
        }
        var grantType: TokenEndpointRequest.GrantType?
        let result = await vend(to: service, requestID: request.id, forced: false, since: start) { audit in
            let parsed = try TokenEndpointRequest(form, from: service)
            grantType = parsed.grantType
            return try await token(for: parsed, from: service, audit: &audit)
        }
        switch result {
        case .success(let token): return response(with: token, grantType: grantType)
        case .failure(let error): return error.oauthResponse
        }
    }

    private func token(
        for request: TokenEndpointRequest,
        from service: Service,
        audit: inout Audit
    ) async throws -> VendedToken {
        audit.isPresent = request.presentsToken
        let userID = request.presentsToken ? try await presentUser(request.subject) : request.subject
        do {
            return try await token(of: userID, demands: request.demands, for: service, audit: &audit)
        } catch {
            throw try await orDoubt(ServiceError(causedBy: error), about: audit.grant)
        }
    }

    /// Returns the response of RFC 6749, section 5.1, and RFC 8693, section 2.2.1. The scope is every scope that the
    /// user has granted, or requests-oauthlib refuses the token.
    private func response(with token: VendedToken, grantType: TokenEndpointRequest.GrantType?) -> ServerResponse {
        .object(headers: ServiceError.oauthHeaders) { line in
            line.field("access_token", token.accessToken.reveal())
            if grantType == .tokenExchange { line.field("issued_token_type", TokenEndpointRequest.accessTokenType) }
            line.field("token_type", token.type)
            line.field("expires_in", token.secondsLeft(at: time.now))
            if !token.scope.isEmpty { line.field("scope", token.scope) }
        }
    }

    /// Returns the user of an app's token that a service presents.
    private func presentUser(_ token: String) async throws -> String {
        do {
            return try await appTokens.caller(presenting: token).userID
        } catch let error as AppError {
            let problem = PayPulseErrorForm(error).message
            if case .keysUnavailable(let wait) = error { throw ServiceError.keysUnavailable(problem, wait: wait) }
            // RFC 8693, section 2.2.2. Not invalid_grant: the user's connection to Google is as before.
            throw ServiceError.invalidRequest("the subject_token is refused: \(problem)")
        }
    }

    /// Returns the error for now, instead of the end of a grant that the worker itself can still undo. Libraries delete
    /// the connection after `invalid_grant`, so it must be final.
    private func orDoubt(_ error: ServiceError, about grant: GrantID?) async throws -> ServiceError {
        guard case .mustAct(let state, let reason, _) = error, state.endsRefreshes else { return error }
        guard let grant, let wait = try await provider.recallTimeLeft(of: grant) else { return error }
        return .unavailable(reason: reason.whileInDoubt.rawValue, wait: wait)
    }
}
