import Clocks

/// The file that lines go to, followed by its name, with what was told about its failures.
struct LineOutput: ~Copyable {
    private let destination: LineDestination
    private let time: any TimeSource
    private let diagnostics: DiagnosticLog
    private var file: LineFile
    private var lastLook: BootInstant
    private var lost = 0
    private var hasToldOfReopening = false

    init(
        _ destination: LineDestination,
        time: any TimeSource,
        diagnostics: DiagnosticLog
    ) throws(LineFileError) {
        self.destination = destination
        self.time = time
        self.diagnostics = diagnostics
        file = try LineFile(destination)
        lastLook = time.sinceBoot
    }

    /// Writes a line, or says that it is lost; the diagnostic log hears of the first loss and of the end of the losses.
    mutating func write(_ line: [UInt8]) -> Bool {
        followName()
        do {
            try file.append(line)
        } catch {
            if lost == 0 { diagnostics.error("lines are being lost", ["reason": error.description]) }
            lost += 1
            return false
        }
        if lost > 0 {
            diagnostics.notice("lines are written again", ["lost": lost.description])
            lost = 0
        }
        return true
    }

    /// Opens the file anew by its name; while that fails, lines go on into the file that is open.
    mutating func reopen() {
        guard case .file = destination else { return }
        lastLook = time.sinceBoot
        do {
            file = try LineFile(destination)
            hasToldOfReopening = false
        } catch {
            if !hasToldOfReopening {
                diagnostics.error("a file of lines cannot be reopened", ["reason": error.description])
            }
            hasToldOfReopening = true
        }
    }

    /// Notices, at most once a second, that the file was moved or removed.
    private mutating func followName() {
        guard case .file(let path) = destination, time.sinceBoot - lastLook >= .seconds(1) else { return }
        lastLook = time.sinceBoot
        if FileIdentity(path: path) != file.identity { reopen() }
    }
}
