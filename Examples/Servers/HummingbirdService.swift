import HTTPTypes
import Hummingbird
import NIOCore
import WorkerTokens

/// Routes of a Hummingbird server that reads its users' mail, and gets the worker's notices.
func addRoutes(to router: Router<BasicRequestContext>, tokens: WorkerTokens, notices: NoticeVerifier) {
    router.get("mail/:user") { _, context in
        let user = try context.parameters.require("user")
        do {
            return try await tokens.withToken(for: user) { token in try await newestMail(token) }
        } catch TokenError.signInAgain {
            throw HTTPError(.conflict, message: "Please connect your Google account again.")
        } catch TokenError.tryAgain(let seconds, _) {
            var error = HTTPError(.serviceUnavailable)
            error.headers[.retryAfter] = String(Int(seconds))
            throw error
        }
    }

    router.post("google-notices") { request, _ -> HTTPResponse.Status in
        let body = try await request.body.collect(upTo: 64 * 1024)
        do {
            let notice = try notices.notice(in: body.readableBytesView) { name in
                HTTPField.Name(name).flatMap { request.headers[$0] }
            }
            if let user = notice.userID { await tokens.forget(user: user) }
            return .noContent
        } catch NoticeError.forged {
            return .unauthorized
        } catch {
            return .badRequest
        }
    }
}
