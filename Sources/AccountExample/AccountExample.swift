import AccountClient
import Foundation

/// Goes the whole way of an app: signs in, calls, survives a refused token, refreshes once for many callers, logs out.
///
/// `account-example BASE_URL` reads a Google access token from standard input. It prints what it does, and no token.
@main
enum AccountExample {
    static func main() async {
        guard CommandLine.arguments.count == 2, let baseURL = URL(string: CommandLine.arguments[1]) else {
            say("usage: account-example BASE_URL < FILE_WITH_A_GOOGLE_ACCESS_TOKEN", to: .standardError)
            exit(64)
        }
        guard let googleAccessToken = readLine(), !googleAccessToken.isEmpty else {
            say("account-example: no Google access token on standard input", to: .standardError)
            exit(65)
        }
        do {
            try await Journey(baseURL: baseURL).run(googleAccessToken: googleAccessToken)
        } catch {
            say("account-example: \(error)", to: .standardError)
            exit(1)
        }
    }

    static func say(_ line: String, to file: FileHandle = .standardOutput) {
        file.write(Data("\(line)\n".utf8))
    }
}
