#!/usr/bin/env bash
# An installed tree serves a C program through pkg-config, shared and static, and through CMake, wherever it lies.
. "$(dirname "$0")/lib.sh"

build=$(dirname "$THIELE")
flags=""
if grep -q '^THIELE_SANITIZE:BOOL=ON' "$build/CMakeCache.txt"; then
    flags="-fsanitize=address,undefined"
fi
check "cmake --install" env DESTDIR="$WORK/tree" cmake --install "$build" --prefix /opt/thiele
mv tree moved
root=$WORK/moved/opt/thiele
pc=$(find "$root" -name thiele.pc)
lib=$(dirname "$(find "$root" -name libthiele.a)")
export PKG_CONFIG_PATH=${pc%/*}
export LD_LIBRARY_PATH=$lib
run generate -n 40 -o train.csv

# predicts PROGRAM: it fits, predicts and says so
predicts() {
    last=$1
    "$1" >"$out" 2>"$err"
    status=$?
    expect_done
    expect_out '^strength at'
}
# shellcheck disable=SC2046,SC2086
check "compiles with pkg-config" cc $flags "$SOURCE/examples/predict.c" $(pkg-config --cflags --libs thiele) -o shared
predicts ./shared
# shellcheck disable=SC2046,SC2086
check "compiles with the archive" cc $flags "$SOURCE/examples/predict.c" $(pkg-config --cflags thiele) "$lib/libthiele.a" \
    $(sed -n 's/^Libs.private: //p' "$pc") -o static
predicts ./static
mkdir consumer
cat >consumer/CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.22)
project(consumer LANGUAGES C)
find_package(thiele 0.2 REQUIRED)
add_executable(consumer ${SOURCE})
target_link_libraries(consumer PRIVATE thiele::thiele)
CMAKE
check "CMake finds it" cmake -S consumer -B consumer/build -G Ninja -DCMAKE_PREFIX_PATH="$root" \
    -DSOURCE="$SOURCE/examples/predict.c" -DCMAKE_C_FLAGS="$flags"
check "CMake builds with it" cmake --build consumer/build
predicts consumer/build/consumer
expect_file "$root/share/man/man1/thiele.1"
finish
