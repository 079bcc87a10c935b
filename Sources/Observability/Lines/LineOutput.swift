import Clocks

/// The file that lines are written to, followed by its name, with the state of its failure reports.
struct LineOutput: ~Copyable {
    private let destination: LineDestination
    private let time: any TimeSource
    private let diagnostics: DiagnosticLog
    private var file: LineFile
    private var lastCheck: BootInstant
    private var lost = 0
    private var hasReportedReopening = false

    init(
        _ destination: LineDestination,
        time: any TimeSource,
        diagnostics: DiagnosticLog
    ) throws(LineFileError) {
        self.destination = destination
        self.time = time
        self.diagnostics = diagnostics
        file = try LineFile(destination)
        lastCheck = time.sinceBoot
    }

    /// Writes a line; returns `false` if it is lost.
    ///
    /// The diagnostic log reports the first loss and the end of the losses.
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

    /// Opens the file again by its name.
    ///
    /// If that fails, lines continue to go into the file that is open.
    mutating func reopen() {
        guard case .file = destination else { return }
        lastCheck = time.sinceBoot
        do {
            file = try LineFile(destination)
            hasReportedReopening = false
        } catch {
            if !hasReportedReopening {
                diagnostics.error("a file of lines cannot be reopened", ["reason": error.description])
            }
            hasReportedReopening = true
        }
    }

    /// Checks, at most once a second, if the file was moved or removed.
    private mutating func followName() {
        guard case .file(let path) = destination, time.sinceBoot - lastCheck >= .seconds(1) else { return }
        lastCheck = time.sinceBoot
        if FileIdentity(path: path) != file.identity { reopen() }
    }
}
