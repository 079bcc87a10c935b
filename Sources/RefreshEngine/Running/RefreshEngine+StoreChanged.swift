import Clocks

extension RefreshEngine {
    /// Reads the due index soon: something that falls due was stored by another part of this process.
    package func storeChanged() {
        nextScan = time.sinceBoot
        wake()
    }
}
