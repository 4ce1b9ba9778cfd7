# nix-build packaging/nix
{ pkgs ? import <nixpkgs> { } }:

pkgs.stdenv.mkDerivation {
  pname = "openbnns";
  version = "0.1.0";
  src = pkgs.lib.cleanSourceWith {
    src = pkgs.lib.cleanSource ../..;
    filter = path: type: baseNameOf path != "build";
  };
  nativeBuildInputs = with pkgs; [ cmake ninja pkg-config ];
  buildInputs = with pkgs; [ libhwy blas lapack libpng libjpeg zlib ];
  cmakeFlags = [ "-DBNNS_TESTS=OFF" "-DBNNS_MPI=OFF" ];
  meta = {
    description = "The classic BNNS neural-network API on Linux";
    license = pkgs.lib.licenses.asl20;
    platforms = [ "x86_64-linux" ];
    mainProgram = "bnns";
  };
}
