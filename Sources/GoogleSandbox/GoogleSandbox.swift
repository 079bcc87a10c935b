private import Base
private import Dispatch
private import Glibc
private import HTTPServer

/// The command `google-sandbox`: a fake of Google's OAuth endpoints on the loopback interface.
@main
enum GoogleSandbox {
    static func main() async {
        let arguments: SandboxArguments
        do throws(ArgumentError) {
            arguments = try SandboxArguments(CommandLine.arguments.dropFirst())
        } catch {
            write("google-sandbox: \(error.message)\nTry google-sandbox --help.\n", to: STDERR_FILENO)
            exit(EX_USAGE)
        }
        if arguments.wantsHelp {
            write(SandboxArguments.help, to: STDOUT_FILENO)
            return
        }

        let (stop, continuation) = AsyncStream<Void>.makeStream()
        let signals = onTerminationSignals { continuation.finish() }
        defer { for source in signals { source.cancel() } }
        let sandbox = Sandbox(time: SystemTime(), random: SystemRandom()) { line in
            if !arguments.isQuiet { write(line + "\n", to: STDOUT_FILENO) }
        }
        do throws(HTTPServerError) {
            // One control request may create thousands of grants, and thousands of clients may wait during an outage.
            var configuration = HTTPServer.Configuration(listen: .tcp(address: "127.0.0.1", port: arguments.port))
            configuration.limits.bodyBytes = 64 << 20
            configuration.maximumConnections = 16_384
            let server = try HTTPServer(configuration: configuration, handler: sandbox.answer)
            write("google-sandbox listening on http://127.0.0.1:\(server.port)\n", to: STDOUT_FILENO)
            for await _ in stop {}
            await server.stop(within: .seconds(1))
        } catch {
            write("google-sandbox: \(error)\n", to: STDERR_FILENO)
            exit(EX_UNAVAILABLE)
        }
    }

    /// Calls back on SIGTERM and SIGINT as long as the sources are kept.
    private static func onTerminationSignals(_ body: @escaping @Sendable () -> Void) -> [any DispatchSourceSignal] {
        [SIGTERM, SIGINT].map { number in
            // Keeps the signal from ending the process. The source still receives it.
            _ = signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler(handler: body)
            source.activate()
            return source
        }
    }

    /// Writes the whole text at once, unbuffered, so that the reader of a pipe sees each line immediately.
    private static func write(_ text: String, to descriptor: Int32) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let written = unsafe rest.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
            // The reader of the output has closed it, so the text is dropped.
            guard written > 0 else { return }
            rest = rest.dropFirst(written)
        }
    }
}
