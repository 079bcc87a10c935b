import Foundation
import WorkerTokens

/// Acts as a service that calls Google for a user, or as a backend that gets a notice.
///
///     worker-tokens-example unix:/run/refresh-worker/internal.sock alice https://gmail.googleapis.com/… <credential
///     worker-tokens-example notice SECRET_FILE <request.json
///
/// It prints what Google answered, or what the notice says, and never a token.
@main
enum WorkerTokensExample {
    static func main() async {
        let arguments = Array(CommandLine.arguments.dropFirst())
        do {
            switch arguments.count {
            case 2 where arguments[0] == "notice":
                say("\(try ReceivedNotice.read(secretFile: arguments[1]))")
            case 3:
                guard let credential = readLine() else { usage() }
                let service = try ExampleService(worker: arguments[0], credential: credential)
                try await service.call(arguments[2], asUser: arguments[1])
            default: usage()
            }
        } catch {
            say("worker-tokens-example: \(error)", to: .standardError)
            exit(1)
        }
    }

    static func say(_ line: String, to file: FileHandle = .standardOutput) {
        file.write(Data("\(line)\n".utf8))
    }

    private static func usage() -> Never {
        let usage = "usage: worker-tokens-example (BASE_URL | unix:PATH) USER GOOGLE_URL | notice SECRET_FILE"
        say(usage, to: .standardError)
        exit(64)
    }
}
