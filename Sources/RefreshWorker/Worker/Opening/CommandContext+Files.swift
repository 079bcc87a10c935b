import Base

extension CommandContext {
    /// Reads a file that a setting names.
    func read(_ path: String, for flag: String, orElse advice: String = "") throws(CommandError) -> [UInt8] {
        do throws(InputError) {
            return try inputs.files.read(path)
        } catch {
            let code: ExitCode = error.mayPass ? .inputOutput : .configuration
            throw CommandError(code, "\(flag): \(path) \(error.message)\(advice)")
        }
    }
}
